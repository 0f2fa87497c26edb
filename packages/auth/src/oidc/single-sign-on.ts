import { createHash, randomBytes } from 'node:crypto'
import { HttpError } from '@domains-and-files/http'
import type { FastifyBaseLogger } from 'fastify'
import * as client from 'openid-client'
import { z } from 'zod'
import { digestOf, serviceOf } from '../api-tokens/token-format.ts'
import { loginFailed, notAllowed, notBegun, providerAway } from '../errors.ts'
import { isLoopback } from '../issuer-url.ts'
import type { Auth } from '../open-auth.ts'
import { Role } from '../rights.ts'
import type { OidcConfig } from '../settings.ts'
import type { User } from '../users/user.ts'
import { rightsOfGroups } from './group-rights.ts'
import { bindUser, type Identity } from './oidc-users.ts'

type Dependencies = Pick<Auth, 'users' | 'lastLogins' | 'sessions' | 'oneTime' | 'audience' | 'now'>

/** State of a login in progress. Kept in a signed cookie, so that any replica can serve the callback. */
const Begun = z.object({
  nonce: z.string(),
  verifier: z.string(),
  return_to: z.string(),
  challenge: z.string(),
  exp: z.number(),
})

/** What a one-time code is redeemed for: a login, or why there is none. */
const Login = z.object({
  username: z.string(),
  /** Id of the user: the code is void for a later user of the same name. */
  id: z.string(),
  rights: z.object({
    role: Role,
    domains: z.array(z.string()).optional(),
    folders: z.array(z.string()).optional(),
  }),
  challenge: z.string(),
})
const Refusal = z.object({
  status: z.int(),
  code: z.string(),
  detail: z.string(),
  challenge: z.string(),
})
const Redeemable = z.union([Login, Refusal])

const cookieSeconds = 600
const codeSeconds = 60

/**
 * Logins at an OpenID provider: authorization code flow with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636). The first
 * login discovers the provider; after a failure the next login tries again.
 */
export class SingleSignOn {
  readonly #auth: Dependencies
  readonly #config: OidcConfig
  readonly #log: FastifyBaseLogger
  readonly #redirectUri: string
  #discovered: Promise<client.Configuration> | undefined

  constructor(auth: Dependencies, config: OidcConfig, log: FastifyBaseLogger) {
    this.#auth = auth
    this.#config = config
    this.#log = log
    this.#redirectUri = `${config.baseUrl}/api/auth/oidc/callback`
  }

  /**
   * Begins a login. `challenge` is the PKCE challenge (S256) of the client that will redeem the one-time code. A browser
   * brings an error to the client, see `finish`.
   * @returns the redirect URL of the provider, and the cookie for the callback.
   * @throws {HttpError} 503 while the provider is away.
   */
  async begin(return_to: string, challenge: string, isBrowser = false) {
    const [state, nonce, verifier] = [randomText(), randomText(), randomText()]
    const parameters = {
      ...{ redirect_uri: this.#redirectUri, response_type: 'code', scope: this.#config.scopes },
      ...{ state, nonce, code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
    }
    const location = await this.#ask(async (provider) =>
      client.buildAuthorizationUrl(provider, parameters),
    ).catch(async (error) =>
      withCode(return_to, await this.#createRefusal(error, challenge, isBrowser)),
    )
    const begun = { nonce, verifier, return_to, challenge }
    const options = { audience: this.#audienceOf(state), ttl: cookieSeconds }
    const value = this.#auth.sessions.sign(begun, options)
    return { location: location.href, cookie: this.#cookie(state, value, cookieSeconds) }
  }

  /**
   * Finishes a login: exchanges the code in the query of the callback, and verifies the ID token: signature, issuer,
   * audience, times and nonce. A browser shows no error of its own: it brings the client a code that is redeemed for the error.
   * @returns the redirect URL of the client with a one-time code, and a cookie that deletes that of this login.
   * @throws {HttpError} 400, 401, 403 `not_allowed`, or 503 while the provider is away.
   */
  async finish(query: string, cookies = '', isBrowser = false) {
    const state = new URLSearchParams(query).get('state') ?? ''
    const begun = this.#readCookie(state, cookies)
    const code = await this.#exchange(query, state, begun).catch((error) =>
      this.#createRefusal(error, begun.challenge, isBrowser),
    )
    const location = withCode(begun.return_to, code)
    return { location: location.href, cookie: this.#cookie(state, '', 0) }
  }

  async #exchange(query: string, state: string, begun: z.infer<typeof Begun>): Promise<string> {
    const { nonce, verifier, challenge } = begun
    const identity = await this.#ask(async (provider) => {
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier }
      const tokens = await client.authorizationCodeGrant(
        provider,
        new URL(this.#redirectUri + query),
        { ...checks, idTokenExpected: true },
      )
      return this.#identityOf(provider, tokens)
    })
    return this.#createLogin(identity, challenge)
  }

  /**
   * Redeems a one-time code: the user, with the rights of this login. A wrong verifier uses the code up, too.
   * @returns undefined if the code is unknown, used or expired, the verifier is wrong, or the user was removed meanwhile.
   * @throws {HttpError} why the login failed, for a code that a browser brought from there.
   */
  async redeem(code: string, verifier: string): Promise<User | undefined> {
    const { users, oneTime, lastLogins } = this.#auth
    const value = await oneTime.take(digestOf(`code ${code}`))
    if (value === undefined) return undefined
    const found = Redeemable.parse(JSON.parse(value))
    if (challengeOf(verifier) !== found.challenge) return undefined
    if ('status' in found) throw new HttpError(found.status, found.code, found.detail)
    const { username, id, rights } = found
    const user = await users.find(username)
    if (!user || user.id !== id) return undefined
    const loggedIn = { ...user, ...rights }
    await lastLogins.recordRights(loggedIn)
    return loggedIn
  }

  async #createLogin(identity: Identity, challenge: string): Promise<string> {
    const { audience, users } = this.#auth
    const { limits: kind } = serviceOf(audience)
    const rights = rightsOfGroups(identity.groups, { roles: this.#config.roles, kind })
    if (!rights) {
      this.#log.info({ subject: identity.subject }, 'login refused: in no group of OIDC_ROLES')
      throw notAllowed('You are in no group that may use this service: ask the operator')
    }
    const { username, id = '' } = await bindUser(users, identity, rights.role)
    return this.#createCode({ username, id, rights, challenge })
  }

  async #createRefusal(error: unknown, challenge: string, isBrowser: boolean): Promise<string> {
    if (!isBrowser || !(error instanceof HttpError)) throw error
    const { status, code, message: detail } = error
    return this.#createCode({ status, code, detail, challenge })
  }

  async #createCode(value: z.infer<typeof Redeemable>): Promise<string> {
    const { oneTime, now } = this.#auth
    const code = randomText()
    await oneTime.put(digestOf(`code ${code}`), JSON.stringify(value), now() + codeSeconds * 1000)
    return code
  }

  #readCookie(state: string, cookies: string): z.infer<typeof Begun> {
    const prefix = `${cookieName(state)}=`
    const cookie = cookies.split(/; */).find((each) => each.startsWith(prefix)) ?? ''
    const value = cookie.slice(prefix.length)
    const claims = this.#auth.sessions.read(value, this.#audienceOf(state))
    const { data: begun } = Begun.safeParse(claims)
    if (begun && begun.exp * 1000 > this.#auth.now()) return begun
    throw notBegun() // A missing and a forged cookie get the same error.
  }

  #audienceOf(state: string): string {
    return `${this.#auth.audience} ${state}`
  }

  #cookie(state: string, value: string, seconds: number): string {
    const { protocol, pathname } = new URL(this.#config.baseUrl)
    const path = `${pathname.replace(/\/$/, '')}/api/auth/oidc`
    const secure = protocol === 'https:' ? '; Secure' : ''
    return `${cookieName(state)}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
  }

  /** @throws {HttpError} 403 where the provider refuses or its response is not valid, 503 while it is away. */
  async #ask<T>(work: (provider: client.Configuration) => Promise<T>): Promise<T> {
    try {
      this.#discovered ??= discover(this.#config).catch((error: unknown) => {
        this.#discovered = undefined
        throw error
      })
      return await work(await this.#discovered)
    } catch (error) {
      this.#log.warn({ err: error }, 'login at the provider failed')
      throw isOutage(error) ? providerAway() : loginFailed()
    }
  }

  // Name and groups from the ID token, else from userinfo.
  async #identityOf(
    provider: client.Configuration,
    tokens: Awaited<ReturnType<typeof client.authorizationCodeGrant>>,
  ): Promise<Identity> {
    const { usernameClaim, groupsClaim } = this.#config
    const claims = tokens.claims()
    if (!claims) throw new Error('The provider sent no ID token')
    const isComplete = usernameClaim in claims && groupsClaim in claims
    const more =
      isComplete || !provider.serverMetadata().userinfo_endpoint
        ? {}
        : await client.fetchUserInfo(provider, tokens.access_token, claims.sub)
    const all: client.IDToken = { ...more, ...claims }
    const { [usernameClaim]: name, [groupsClaim]: groups } = all
    // Security: where the provider does not verify addresses, anyone could enter somebody else's.
    const isUnverified = usernameClaim === 'email' && all.email_verified === false
    return {
      ...{ issuer: claims.iss, subject: claims.sub },
      name: typeof name === 'string' && !isUnverified ? name : undefined,
      groups: [groups].flat().filter((group) => typeof group === 'string'),
    }
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcConfig) {
  const url = new URL(issuer)
  const configuration = await client.discovery(
    url,
    clientId,
    undefined,
    clientSecret === undefined ? client.None() : sendSecret(clientSecret),
    // Plain http only for a provider on loopback; the setting rejects any other.
    { timeout: timeoutS, execute: isLoopback(url) ? [client.allowInsecureRequests] : [] },
  )
  // Also verify the signature of the ID token: by default the library trusts TLS.
  client.enableNonRepudiationChecks(configuration)
  return configuration
}

// RFC 6749, 2.3.1: HTTP Basic, the default for providers that publish no methods.
const sendSecret =
  (secret: string): client.ClientAuth =>
  (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const isBasic = methods.includes('client_secret_basic')
    return (isBasic ? client.ClientSecretBasic : client.ClientSecretPost)(secret)(server, ...rest)
  }

const timeoutS = 10

// The provider is unreachable, as opposed to a refusal or an invalid token.
const isOutage = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof client.ClientError && outages.has(error.code))

const outages = new Set<string | undefined>([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
])

function withCode(returnTo: string, code: string): URL {
  const location = new URL(returnTo)
  location.searchParams.set('code', code)
  return location
}

const randomText = () => randomBytes(32).toString('base64url')

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')

// One cookie for each login: two can run in one browser at the same time.
const cookieName = (state: string) => `sso_${state.replace(/[^\w-]/g, '').slice(0, 43)}`
