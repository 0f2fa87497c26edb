import { z } from 'zod'
import { prefixOf } from './api-tokens/token-format.ts'

interface Service {
  /** Also the audience of session tokens. */
  name: string
  title: string
  /** Begins its API tokens. */
  prefix: string
}

const services: Service[] = [
  { name: 'domain-service', title: 'domain service', prefix: 'ds_' },
  { name: 'static-service', title: 'static service', prefix: 'ss_' },
]

/** The prefix of a service's API tokens. */
export function tokenPrefixOf(name: string): string {
  const service = services.find((each) => each.name === name)
  if (!service) throw new Error(`${name} has no token prefix`)
  return service.prefix
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
