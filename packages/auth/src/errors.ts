import type { Role } from './authorization.ts'
import type { CreateHttpError } from './start-refused.ts'

export type AuthErrors = ReturnType<typeof createAuthErrors>

/** Every failure that a caller can meet here, by name; each 401 says how to ask (RFC 6750, 3). */
export function createAuthErrors(refuse: CreateHttpError, realm: string) {
  const challenge = (error?: string, description?: string) => ({
    'www-authenticate': `Bearer realm="${realm}"${error ? `, error="${error}", error_description="${description}"` : ''}`,
  })
  const unauthorized = (detail: string, headers: Record<string, string>) =>
    refuse(401, 'unauthorized', detail, headers)

  return {
    tokenMissing: () =>
      unauthorized('Send a token: Authorization: Bearer <access_token>', challenge()),
    authorizationMalformed: () =>
      unauthorized(
        'The Authorization header must be: Bearer <access_token>',
        challenge(
          'invalid_request',
          'The Authorization header must be a scheme Bearer and one token',
        ),
      ),
    tokenInvalid: () =>
      unauthorized(
        'The token is not valid here: log in again',
        challenge('invalid_token', 'The token is not valid here'),
      ),
    tokenExpired: () =>
      refuse(
        401,
        'token_expired',
        'The token has expired: log in again',
        challenge('invalid_token', 'The token has expired'),
      ),
    forbidden: (needed: Role) =>
      refuse(
        403,
        'forbidden',
        `This needs the role ${needed}`,
        challenge('insufficient_scope', `This needs the role ${needed}`),
      ),
    credentialsInvalid: () =>
      refuse(401, 'invalid_credentials', 'The username or the password is wrong', challenge()),
    tooManyLogins: (seconds: number) =>
      refuse(
        429,
        'too_many_requests',
        `Too many wrong logins: try again in ${seconds} seconds`,
        retryAfter(seconds),
      ),
    tooBusy: () =>
      refuse(503, 'unavailable', 'Too many logins at once: try again in a moment', retryAfter(1)),
  }
}

const retryAfter = (seconds: number) => ({ 'retry-after': String(seconds) })
