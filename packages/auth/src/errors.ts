import { HttpError } from '@domains-and-files/http'
import type { Role } from './authorization.ts'

export type AuthErrors = ReturnType<typeof createAuthErrors>

/** The errors of this package. Each 401 and 403 carries a challenge (RFC 6750, 3). */
export function createAuthErrors(realm: string) {
  const unauthorized = (code: string, detail: string, error?: string, description = detail) =>
    new HttpError(401, code, detail, { headers: challenge(realm, error, description) })
  const forbidden = (detail: string) =>
    new HttpError(403, 'forbidden', detail, {
      headers: challenge(realm, 'insufficient_scope', detail),
    })

  return {
    tokenMissing: () =>
      unauthorized('unauthorized', 'Send a token: Authorization: Bearer <access_token>'),
    authorizationMalformed: () =>
      unauthorized(
        'unauthorized',
        'The Authorization header must be: Bearer <access_token>',
        'invalid_request',
        'The Authorization header must be the scheme Bearer and one token',
      ),
    tokenInvalid: () =>
      unauthorized(
        'unauthorized',
        'The token is not valid here: log in again',
        'invalid_token',
        'The token is not valid here',
      ),
    tokenOfOtherService: (audience: string) =>
      unauthorized(
        'unauthorized',
        `This token is for the ${audience}: log in here`,
        'invalid_token',
        `The token is for the ${audience}`,
      ),
    tokenExpired: () =>
      unauthorized(
        'token_expired',
        'The token has expired: log in again',
        'invalid_token',
        'The token has expired',
      ),
    credentialsInvalid: () =>
      unauthorized('invalid_credentials', 'The username or the password is wrong'),
    forbidden: (needed: Role) => forbidden(`This needs the role ${needed}`),
    tooManyLogins: (seconds: number) =>
      new HttpError(
        429,
        'too_many_requests',
        `Too many failed logins: try again in ${seconds} seconds`,
        { headers: retryAfter(seconds) },
      ),
    tooBusy: () =>
      new HttpError(503, 'unavailable', 'Too many logins at once: try again in a moment', {
        headers: retryAfter(1),
      }),
  }
}

const challenge = (realm: string, error: string | undefined, description: string) => ({
  'www-authenticate': `Bearer realm="${realm}"${error ? `, error="${error}", error_description="${description}"` : ''}`,
})

const retryAfter = (seconds: number) => ({ 'retry-after': String(seconds) })
