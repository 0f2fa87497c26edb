import type { IncomingHttpHeaders } from 'node:http'
import type { AuthErrors } from './errors.ts'

/**
 * The token of a request: `Authorization: Bearer`, the password of `Authorization: Basic` (for clients that know no
 * other scheme), or `X-Api-Key`.
 * @throws {HttpError} if there is none, or the header is malformed.
 */
export function readCredential(headers: IncomingHttpHeaders, errors: AuthErrors): string {
  const { authorization, 'x-api-key': apiKey } = headers
  if (authorization !== undefined) {
    const [, scheme = '', value] = /^(bearer|basic) +([^\s,]+)$/i.exec(authorization) ?? []
    if (!value) throw errors.authorizationMalformed()
    return scheme.toLowerCase() === 'bearer' ? value : passwordOf(value, errors)
  }
  if (typeof apiKey === 'string' && apiKey !== '') return apiKey
  throw errors.tokenMissing()
}

// RFC 7617: base64 of `user:password`; the user name is ignored.
function passwordOf(value: string, errors: AuthErrors): string {
  const text = Buffer.from(value, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon === -1) throw errors.authorizationMalformed()
  return text.slice(colon + 1)
}
