import { type Access, HttpError } from '@domains-and-files/http'

// Each 401, and the 403 for a role, carries a challenge (RFC 6750, 3).
function refuse(status: 401 | 403, code: string, detail: string, error?: string) {
  // The remedy is for people only. An attribute has no quotes, and no `<` of an example.
  const [description = ''] = detail.split(/:(?= )/)
  const why = error ? `, error="${error}", error_description="${description}"` : ''
  const challenge = `Bearer realm="domains-and-files"${why}`
  return new HttpError(status, code, detail, { headers: { 'www-authenticate': challenge } })
}

export const tokenMissing = () =>
  refuse(401, 'unauthorized', 'Send a token: Authorization: Bearer <access_token>')

export const authorizationMalformed = () =>
  refuse(
    401,
    'unauthorized',
    'The Authorization header must be the scheme Bearer and one token: Bearer <access_token>',
    'invalid_request',
  )

const again = 'log in again, or create another API token'

export const tokenInvalid = () =>
  refuse(401, 'unauthorized', `The token is not valid here: ${again}`, 'invalid_token')

export const tokenExpired = () =>
  refuse(401, 'token_expired', `The token has expired: ${again}`, 'invalid_token')

export const credentialsInvalid = () =>
  refuse(401, 'invalid_credentials', 'The username or the password is wrong')

export const codeInvalid = () =>
  refuse(401, 'invalid_credentials', 'The code is unknown, used or expired: log in again')

export const roleRequired = (needed: Access) =>
  refuse(403, 'forbidden', `This needs the role ${needed}`, 'insufficient_scope')

export function tooManyLogins(seconds: number) {
  const detail = `Too many failed logins: try again in ${seconds} seconds`
  return new HttpError(429, 'too_many_requests', detail, {
    headers: { 'retry-after': String(seconds) },
  })
}

const retryIn = (seconds: number, reason: string, cause?: unknown) =>
  new HttpError(503, 'unavailable', `${reason}: try again in a moment`, {
    headers: { 'retry-after': String(seconds) },
    cause,
  })

export const tooBusy = () => retryIn(1, 'Too many logins at once')

export const providerAway = () => retryIn(10, 'The provider of single sign-on cannot be reached')

export const issuerAway = (cause?: unknown) =>
  retryIn(10, 'The issuer of the token cannot be reached', cause)

export const loginRequired = () =>
  new HttpError(403, 'forbidden', 'An API token cannot do this: log in with a password')

export const passwordLoginOff = () =>
  new HttpError(403, 'password_login_off', 'Logins with a password are off: use single sign-on')

/** The token of a workload is refused. The message says why, for the log. */
export class TokenRefusedError extends Error {}

/** 403 of single sign-on: the provider knows the person, but the service does not admit it. */
export const notAllowed = (detail: string) => new HttpError(403, 'not_allowed', detail)

export const notBegun = () =>
  new HttpError(
    400,
    'login_not_begun',
    'This login was not begun in this browser, or over ten minutes ago: begin again',
  )

export const loginFailed = () =>
  notAllowed('The provider refused the login, or its response is not valid: begin again')
