import { HttpError } from '@domains-and-files/http'
import type { Role } from './rights.ts'

export type AuthErrors = ReturnType<typeof createAuthErrors>

/** The errors of this package. Each 401 and 403 carries a challenge (RFC 6750, 3). */
export function createAuthErrors(realm: string) {
  const refuse = (status: 401 | 403, code: string, detail: string, reason?: Reason) =>
    new HttpError(status, code, detail, { headers: challenge(realm, reason) })
  const invalid = (detail: string, description: string) =>
    refuse(401, 'unauthorized', detail, { error: 'invalid_token', description })
  const expired = (detail: string) =>
    refuse(401, 'token_expired', detail, {
      error: 'invalid_token',
      description: 'The token has expired',
    })

  return {
    tokenMissing: () =>
      refuse(401, 'unauthorized', 'Send a token: Authorization: Bearer <access_token>'),
    authorizationMalformed: () =>
      refuse(401, 'unauthorized', 'The Authorization header must be: Bearer <access_token>', {
        error: 'invalid_request',
        description: 'The Authorization header must be the scheme Bearer and one token',
      }),
    tokenInvalid: () =>
      invalid('The token is not valid here: log in again', 'The token is not valid here'),
    apiTokenInvalid: () =>
      invalid(
        'The API token is not valid here: check that it is complete, or create another',
        'The token is not valid here',
      ),
    tokenOfOtherService: (service: string) =>
      invalid(`This token is for the ${service}: log in here`, `The token is for the ${service}`),
    tokenExpired: () => expired('The token has expired: log in again'),
    apiTokenExpired: () => expired('The API token has expired: create another'),
    credentialsInvalid: () =>
      refuse(401, 'invalid_credentials', 'The username or the password is wrong'),
    codeInvalid: () =>
      refuse(401, 'invalid_credentials', 'The code is unknown, used or expired: log in again'),
    forbidden: (needed: Role) => insufficient(`This needs the role ${needed}`),
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

  function insufficient(detail: string) {
    return refuse(403, 'forbidden', detail, { error: 'insufficient_scope', description: detail })
  }
}

export const loginRequired = () =>
  new HttpError(403, 'forbidden', 'An API token cannot do this: log in with a password')

export const passwordLoginOff = () =>
  new HttpError(
    403,
    'password_login_off',
    'Logins with a password are switched off: use single sign-on',
  )

/** The token of a workload is refused. The message says why, for the log. */
export class TokenRefusedError extends Error {}

/** The keys of the issuer of a token cannot be had. */
export class IssuerAwayError extends Error {}

/** The attributes of a challenge (RFC 6750, 3). */
interface Reason {
  error: string
  description: string
}

const challenge = (realm: string, reason?: Reason) => ({
  'www-authenticate': `Bearer realm="${realm}"${reason ? `, error="${reason.error}", error_description="${reason.description}"` : ''}`,
})

const retryAfter = (seconds: number) => ({ 'retry-after': String(seconds) })
