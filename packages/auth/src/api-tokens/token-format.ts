import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { validationFailed } from '@domains-and-files/http'
import type { Limits } from '../limits.ts'

// A fixed prefix and a checksum, so that secret scanners find leaked tokens and a typo is rejected without a look-up.

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const pattern = /^[a-z]{2}_[0-9A-Za-z]{38}$/

/**
 * What begins the API tokens of a service, and what its callers are limited to. The names of the services are also the
 * audiences of session tokens.
 */
export const services = {
  'domain-service': { prefix: 'ds_', limits: 'domains' },
  'static-service': { prefix: 'ss_', limits: 'folders' },
} as const

export type ServiceName = keyof typeof services

/** @throws {HttpError} 400 for the limit of the other service: what is granted would be unlimited here. */
export function requireOwnLimits(service: ServiceName, granted: Limits): void {
  const { limits } = services[service]
  const other = limits === 'domains' ? 'folders' : 'domains'
  if (granted[other])
    throw validationFailed([{ path: `/${other}`, message: `limits nothing in the ${service}: send ${limits}` }])
}

/** A new token: the prefix, 32 random base62 digits (190 bits), and a checksum. */
export function createToken(prefix: string): string {
  const random = Array.from({ length: 32 }, () => digits[randomInt(digits.length)]).join('')
  return `${prefix}${random}${checksumOf(prefix + random)}`
}

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
