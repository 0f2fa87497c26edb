import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { z } from 'zod'

// A fixed prefix and a checksum, so that secret scanners find leaked tokens and a typo is rejected without a look-up.

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const pattern = /^[a-z]{2}_[0-9A-Za-z]{38}$/

interface Service {
  /** Also the audience of session tokens. */
  name: string
  title: string
  /** Begins its API tokens. */
  prefix: string
  /** What its callers are limited to. */
  limits: 'domains' | 'folders'
}

const services: Service[] = [
  { name: 'domain-service', title: 'domain service', prefix: 'ds_', limits: 'domains' },
  { name: 'static-service', title: 'static service', prefix: 'ss_', limits: 'folders' },
]

export function serviceOf(name: string): Service {
  const service = services.find((each) => each.name === name)
  if (!service) throw new Error(`There is no service ${name}`)
  return service
}

/** The title of the other service that a rejected token seems to be for. Unverified: for an error message only. */
export function otherServiceOf(token: string, own: string): string | undefined {
  const prefix = prefixOf(token)
  const audience = prefix ? undefined : audienceOf(token)
  return services.find(
    ({ name, prefix: known }) => name !== own && (known === prefix || name === audience),
  )?.title
}

const Claims = z.object({ aud: z.string() })

function audienceOf(token: string): string | undefined {
  const [, payload = ''] = token.length > 4096 ? [] : token.split('.')
  try {
    return Claims.parse(JSON.parse(Buffer.from(payload, 'base64url').toString())).aud
  } catch {
    return undefined
  }
}

/** A new token: the prefix, 32 random base62 digits (190 bits), and a checksum. */
export function createToken(prefix: string): string {
  const random = Array.from({ length: 32 }, () => digits[randomInt(digits.length)]).join('')
  return `${prefix}${random}${checksumOf(prefix + random)}`
}

/** Whether a text has the prefix of an API token; the rest is not checked. */
export const looksLikeApiToken = (text: string) => /^[ds]s_/.test(text)

/** The prefix of a text in token format with a right checksum; otherwise undefined. */
export function prefixOf(text: string): string | undefined {
  if (!pattern.test(text)) return undefined
  return checksumOf(text.slice(0, -6)) === text.slice(-6) ? text.slice(0, 3) : undefined
}

/** SHA-256, in hex. Enough for a random secret: guessing one of 190 bits is hopeless even unsalted. */
export const digestOf = (token: string) => createHash('sha256').update(token).digest('hex')

// CRC-32 (IEEE) as 6 base62 digits, most significant first.
function checksumOf(text: string): string {
  let rest = crc32(text)
  let encoded = ''
  for (let count = 0; count < 6; count += 1) {
    encoded = (digits[rest % digits.length] ?? '') + encoded
    rest = Math.floor(rest / digits.length)
  }
  return encoded
}
