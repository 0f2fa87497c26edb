import { type Access, forbidden, HttpError, unavailable } from '@domains-and-files/http'

// The errors of this package. Import them as `errors`.

// Each 401, and the 403 for a role, carries a challenge (RFC 6750, 3).
function challenge(status: 401 | 403, code: string, detail: string, error?: string) {
  // The remedy is for people only. An attribute has no quotes, and no `<` of an example.
  const [description = ''] = detail.split(/:(?= )/)
  const why = error ? `, error="${error}", error_description="${description}"` : ''
  const headers = { 'www-authenticate': `Bearer realm="domains-and-files"${why}` }
  return new HttpError(status, code, detail, { headers })
}

const again = 'log in again, or create another API token'

export const tokenMissing = () => challenge(401, 'unauthorized', 'Send a token: Authorization: Bearer <access_token>')
const malformed = 'The Authorization header must be the scheme Bearer and one token: Bearer <access_token>'
export const authorizationMalformed = () => challenge(401, 'unauthorized', malformed, 'invalid_request')
export const tokenInvalid = () =>
  challenge(401, 'unauthorized', `The token is not valid here: ${again}`, 'invalid_token')
export const tokenExpired = () => challenge(401, 'token_expired', `The token has expired: ${again}`, 'invalid_token')
export const credentialsInvalid = () => challenge(401, 'invalid_credentials', 'The username or the password is wrong')
export const codeInvalid = () =>
  challenge(401, 'invalid_credentials', 'The code is unknown, used or expired: log in again')
export const roleRequired = (needed: Access) =>
  challenge(403, 'forbidden', `This needs the role ${needed}, which your user or API token lacks`, 'insufficient_scope')

export const rightsChanged = () =>
  forbidden('Your rights have changed while this request arrived, so nothing was done: send it again')
export const loginRequired = () => forbidden('An API token cannot do this: log in with a password')
export const limitsTooNarrow = () => forbidden('Only an admin without limits can do this')
export const passwordLoginOff = () =>
  new HttpError(403, 'password_login_off', 'Logins with a password are off: use single sign-on')
export const weakPassword = (reason = 'A password must have at least 10 characters') =>
  new HttpError(400, 'weak_password', reason)

export const tooManyLogins = (retryAfter: number) =>
  new HttpError(429, 'too_many_requests', `Too many failed logins: try again in ${retryAfter} seconds`, { retryAfter })

const later = 'try again in a moment'

export const tooBusy = () => unavailable(1, `Too many logins at once: ${later}`)
export const providerAway = () => unavailable(10, `The provider of single sign-on cannot be reached: ${later}`)
export const issuerAway = (cause?: unknown) =>
  unavailable(10, `The issuer of the token cannot be reached: ${later}`, cause)
export const usersUnwritable = (cause: unknown) =>
  unavailable(60, 'The users file has a fault or cannot be written, so nothing was changed: ask the operator', cause)

export const userNotFound = (username: string) => new HttpError(404, 'user_not_found', `No user ${username}`)
export const userExists = (username: string) => new HttpError(409, 'user_exists', `The user ${username} exists already`)
export const rightsElsewhere = (username: string) =>
  new HttpError(409, 'rights_elsewhere', `Change the groups of ${username} at the provider`)
export const lastAdmin = () => new HttpError(409, 'last_admin', 'Only another admin can limit, remove or demote you')

export const tokenNotFound = (id: string) => new HttpError(404, 'token_not_found', `No API token ${id}`)
export const tooManyTokens = (max: number) =>
  new HttpError(409, 'too_many_tokens', `You have ${max} API tokens: delete some first`)
export const tokenExists = (taken: string) =>
  new HttpError(409, 'token_exists', `You have an API token named ${taken}: choose another name`)

export const trustNotFound = (id: string) => new HttpError(404, 'trust_not_found', `No trust ${id}`)
export const trustExists = (taken: string) =>
  new HttpError(409, 'trust_exists', `There is a trust named ${taken}: choose another name`)

/** The token of a workload is refused. The message says why, for the log. */
export class TokenRefusedError extends Error {}

/** 403 of single sign-on: the provider knows the person, but the service does not admit it. */
export const notAllowed = (detail: string) => new HttpError(403, 'not_allowed', detail)
export const loginFailed = () => notAllowed('The provider refused the login, or its response is not valid: begin again')
export const notConfigured = () =>
  new HttpError(404, 'not_found', 'There is no single sign-on here: OIDC_ISSUER is not set')
export const notBegun = () =>
  new HttpError(
    400,
    'login_not_begun',
    'This login was not begun in this browser, or over ten minutes ago: begin again',
  )
