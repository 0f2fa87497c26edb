import { createHash, randomBytes } from 'node:crypto'
import { HttpError, type Logger } from '@domains-and-files/http'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { providerAway } from '../errors.ts'
import { isLoopback } from '../issuer-url.ts'
import type { OneTime } from '../one-time.ts'
import { Role } from '../rights.ts'
import type { OidcConfig } from '../settings.ts'
import type { LastLogins } from '../users/last-logins.ts'
import type { User, Users } from '../users/user.ts'
import { rightsOfGroups } from './group-rights.ts'
import { bindUser, type Identity, notAllowed } from './oidc-users.ts'
import type { Provider } from './provider.ts'

interface Dependencies {
  jwt: FastifyInstance['jwt']
  config: OidcConfig
  audience: string
  /** What this service limits its callers to. */
  limitKind: 'domains' | 'folders'
  users: Users
  lastLogins: LastLogins
  oneTime: OneTime
  /** Milliseconds since 1970. */
  now: () => number
  log: Pick<Logger, 'info' | 'warn'>
}

/** A login that has begun, in a signed cookie: any replica may take the callback. */
const Begun = z.object({
  nonce: z.string(),
  verifier: z.string(),
  return_to: z.string(),
  challenge: z.string(),
  exp: z.number(),
})

/** What a one-time code stands for. */
const Redeemable = z.object({
  username: z.string(),
  /** Of the user: another one of that name is not meant. */
  id: z.string(),
  rights: z.object({
    role: Role,
    domains: z.array(z.string()).optional(),
    folders: z.array(z.string()).optional(),
  }),
  challenge: z.string(),
})

const cookieSeconds = 600
const codeSeconds = 60

/** Logins at an OpenID provider: authorization code flow with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636). */
export class SingleSignOn {
  readonly #options: Dependencies
  #provider: Promise<typeof import('./provider.ts') & { provider: Provider }> | undefined

  constructor(options: Dependencies) {
    this.#options = options
  }

  /**
   * Begins a login.
   * @param challenge of whoever redeems the code: S256 of its verifier
   * @returns where the browser goes, and the cookie that it brings back.
   * @throws {HttpError} 503 while the provider is away.
   */
  async begin(returnTo: string, challenge: string) {
    const { jwt, audience, now } = this.#options
    const [state, nonce, verifier] = [randomText(), randomText(), randomText()]
    const { provider, isOutage } = await this.#load()
    const location = await provider
      .authorizationUrl({ state, nonce, verifier })
      .catch((error: unknown) => {
        throw this.#explain(error, isOutage)
      })
    const exp = Math.floor(now() / 1000) + cookieSeconds
    const begun = { nonce, verifier, return_to: returnTo, challenge, exp }
    const value = jwt.sign(begun, { aud: `${audience} ${state}` })
    return { location, cookie: this.#cookie(state, value, cookieSeconds) }
  }

  /**
   * Finishes a login.
   * @param query of the callback, with its question mark
   * @returns where the browser goes, with a one-time code, and the cookie that ends this login.
   * @throws {HttpError} 400, 401, 403 `not_allowed`, or 503 while the provider is away.
   */
  async finish(query: string, cookies = '') {
    const state = new URLSearchParams(query).get('state') ?? ''
    const begun = this.#readCookie(state, cookies)
    const { provider, isOutage } = await this.#load()
    const identity = await provider.finish(query, { state, ...begun }).catch((error: unknown) => {
      throw this.#explain(error, isOutage)
    })
    const code = await this.#createCode(identity, begun.challenge)
    const location = new URL(begun.return_to)
    location.searchParams.set('code', code)
    return { location: location.href, cookie: this.#cookie(state, '', 0) }
  }

  /**
   * The user of a code, with the rights of this login. A code counts once, also when the verifier is wrong.
   * @returns undefined for a code that is unknown, used or expired, a wrong verifier, and a user who was removed meanwhile.
   */
  async redeem(code: string, verifier: string): Promise<User | undefined> {
    const { users, oneTime, lastLogins } = this.#options
    const value = await oneTime.take(`code ${code}`)
    if (value === undefined) return undefined
    const { username, id, rights, challenge } = Redeemable.parse(JSON.parse(value))
    const user = await users.find(username)
    if (challengeOf(verifier) !== challenge || !user || user.id !== id) return undefined
    const loggedIn = { ...user, ...rights }
    await lastLogins.recordRights(loggedIn)
    return loggedIn
  }

  async #createCode(identity: Identity, challenge: string): Promise<string> {
    const { config, limitKind, users, oneTime, now, log } = this.#options
    const rights = rightsOfGroups(identity.groups, { roles: config.roles, kind: limitKind })
    if (!rights) {
      log.info({ subject: identity.subject }, 'login refused: in no group of OIDC_ROLES')
      throw notAllowed('You are in no group that may use this service: ask the operator')
    }
    const { username, id = '' } = await bindUser(users, identity, rights.role)
    const code = randomText()
    const value: z.infer<typeof Redeemable> = { username, id, rights, challenge }
    await oneTime.put(`code ${code}`, JSON.stringify(value), now() + codeSeconds * 1000)
    return code
  }

  #readCookie(state: string, cookies: string): z.infer<typeof Begun> {
    const { jwt, audience, now } = this.#options
    const prefix = `${cookieName(state)}=`
    const value = cookies.split(/; */).find((each) => each.startsWith(prefix)) ?? ''
    try {
      const options = { allowedAud: `${audience} ${state}`, requiredClaims: ['exp'] }
      const begun = Begun.parse(jwt.verify(value.slice(prefix.length), options))
      if (begun.exp * 1000 > now()) return begun
    } catch {} // The same for a cookie that is missing or forged.
    throw notBegun()
  }

  #cookie(state: string, value: string, seconds: number): string {
    const { protocol, pathname } = new URL(this.#options.config.baseUrl)
    const path = `${pathname.replace(/\/$/, '')}/api/auth/oidc`
    const secure = protocol === 'https:' ? '; Secure' : ''
    return `${cookieName(state)}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
  }

  #load() {
    // Loaded at the first login: it takes 20 MB.
    this.#provider ??= import('./provider.ts').then((module) => ({
      ...module,
      provider: new module.Provider(this.#options.config),
    }))
    return this.#provider
  }

  #explain(error: unknown, isOutage: (error: unknown) => boolean): HttpError {
    this.#options.log.warn({ err: error }, 'login at the provider failed')
    return isOutage(error) ? providerAway() : loginFailed()
  }
}

/** Whether a browser may be sent there with a code: to an origin of CORS_ORIGIN, or a program on its own machine (RFC 8252, 7.3). */
export function mayReturnTo(text: string, origins: readonly string[]): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username || url.password || url.hash) return false
  const isProgram = url.protocol === 'http:' && url.port !== '' && url.hostname !== 'localhost'
  return origins.includes(url.origin) || (isProgram && isLoopback(url))
}

const randomText = () => randomBytes(32).toString('base64url')

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')

// A name of its own for each login, so that two may go on side by side.
const cookieName = (state: string) => `sso_${state.replace(/[^\w-]/g, '').slice(0, 43)}`

export const notBegun = () =>
  new HttpError(
    400,
    'login_not_begun',
    'This login was not begun in this browser, or over ten minutes ago: begin again',
  )

export const loginFailed = () =>
  notAllowed('The provider refused the login, or its response is not valid: begin again')
