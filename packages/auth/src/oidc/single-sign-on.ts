import { createHash, randomUUID } from 'node:crypto'
import { HttpError } from '@domains-and-files/http'
import type { FastifyBaseLogger } from 'fastify'
import * as client from 'openid-client'
import { z } from 'zod'
import { digestOf, services } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import type { Auth } from '../open-auth.ts'
import type { Rights, Role } from '../rights.ts'
import { isLoopback, type OidcConfig } from '../settings.ts'
import { recordLogin } from '../users/sql-users.ts'
import { changeUser, isActive, oidcPrefix, type User, Username, type Users } from '../users/user.ts'
import { rightsOfGroups } from './group-rights.ts'

/** State of a login in progress. Kept in a signed cookie, so that any replica can serve the callback. */
const Begun = z.object({
  nonce: z.string(),
  verifier: z.string(),
  return_to: z.string(),
  /** S256 of the verifier with which the client redeems the one-time code. */
  challenge: z.string(),
  exp: z.number(),
})

/** A browser shows no error by itself: it brings a code that is redeemed for the error. */
type Client = Pick<z.infer<typeof Begun>, 'return_to' | 'challenge'> & { isBrowser: boolean }

/** What a one-time code is redeemed for: a login, or why there is none. */
interface Redeemable {
  login?: { username: string; rights: Omit<Rights, 'records'> }
  refusal?: { status: number; code: string; detail: string }
}

type Identity = Awaited<ReturnType<typeof identityOf>>

const cookieSeconds = 600
const codeSeconds = 60

/**
 * Logins at an OpenID provider: authorization code flow with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636). The first
 * login discovers the provider; after a failure the next login tries again.
 */
export class SingleSignOn {
  readonly #auth: Auth
  readonly #config: OidcConfig
  readonly #log: FastifyBaseLogger
  readonly #redirectUri: string
  #discovered: Promise<client.Configuration> | undefined

  constructor(auth: Auth, config: OidcConfig, log: FastifyBaseLogger) {
    this.#auth = auth
    this.#config = config
    this.#log = log
    this.#redirectUri = `${config.baseUrl}/api/auth/oidc/callback`
  }

  /** Begins a login: the URL of the provider, and the cookie for the callback. @throws {HttpError} 503 while it is away. */
  async begin(to: Client) {
    const [state, nonce] = [client.randomState(), client.randomNonce()]
    const verifier = client.randomPKCECodeVerifier()
    const parameters = {
      redirect_uri: this.#redirectUri,
      response_type: 'code',
      scope: this.#config.scopes,
      state,
      nonce,
      code_challenge: challengeOf(verifier),
      code_challenge_method: 'S256',
    }
    const location = await this.#ask(async (provider) => client.buildAuthorizationUrl(provider, parameters).href).catch(
      (error) => this.#refuse(error, to),
    )
    const { return_to, challenge } = to
    const options = { audience: `${this.#auth.audience} ${state}`, ttl: cookieSeconds }
    const value = this.#auth.sessions.sign({ nonce, verifier, return_to, challenge }, options)
    return { location, cookie: this.#cookie(state, value, cookieSeconds) }
  }

  /**
   * Finishes a login: exchanges the code in the query of the callback, and verifies the ID token: signature, issuer,
   * audience, times and nonce.
   * @returns the URL of the client with a one-time code, and a cookie that deletes that of this login.
   * @throws {HttpError} 400, 401, 403 `not_allowed`, or 503 while the provider is away.
   */
  async finish(query: string, cookies: string, isBrowser: boolean) {
    const state = new URLSearchParams(query).get('state') ?? ''
    const { nonce, verifier, ...begun } = this.#readCookie(state, cookies)
    const to = { ...begun, isBrowser }
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const url = new URL(this.#redirectUri + query)
    const location = await this.#ask(async (provider) => {
      const tokens = await client.authorizationCodeGrant(provider, url, checks)
      return identityOf(provider, tokens, this.#config)
    })
      .then((identity) => this.#logIn(identity, to))
      .catch((error) => this.#refuse(error, to))
    return { location, cookie: this.#cookie(state, '', 0) }
  }

  /**
   * Redeems a one-time code: the user, with the rights of this login. A wrong verifier uses the code up, too.
   * @returns undefined if the code is unknown, used or expired, the verifier is wrong, or the user was removed meanwhile.
   * @throws {HttpError} why the login failed, for a code that a browser brought from there.
   */
  async redeem(code: string, verifier: string): Promise<User | undefined> {
    const { users, database, oneTime, now } = this.#auth
    const value = await oneTime.take(digestOf(`code ${code}`))
    const stored: Redeemable & { challenge?: string } = JSON.parse(value ?? '{}')
    const { challenge, login, refusal } = stored
    if (challengeOf(verifier) !== challenge) return undefined
    if (refusal) throw new HttpError(refusal.status, refusal.code, refusal.detail)
    const user = login && (await users.find(login.username))
    if (!user) return undefined
    await recordLogin(database, { ...login, at: now() })
    return { ...user, ...login.rights }
  }

  async #logIn(identity: Identity, to: Client): Promise<string> {
    const { audience, users } = this.#auth
    const { roles } = this.#config
    const rights = rightsOfGroups(identity.groups, { roles, kind: services[audience].limits })
    if (!rights) {
      this.#log.info({ subject: identity.subject }, 'login refused: in no group of OIDC_ROLES')
      throw errors.notAllowed('You are in no group that may use this service: ask the operator')
    }
    const { username } = await bindUser(users, identity, rights.role)
    return this.#withCode(to, { login: { username, rights } })
  }

  async #refuse(error: unknown, to: Client): Promise<string> {
    if (!to.isBrowser || !(error instanceof HttpError)) throw error
    const { status, code, message: detail } = error
    return this.#withCode(to, { refusal: { status, code, detail } })
  }

  /** The URL of the client, with a one-time code. */
  async #withCode({ return_to, challenge }: Client, redeemable: Redeemable): Promise<string> {
    const { oneTime, now } = this.#auth
    const code = client.randomState()
    const value = JSON.stringify({ challenge, ...redeemable })
    await oneTime.put(digestOf(`code ${code}`), value, now() + codeSeconds * 1000)
    const location = new URL(return_to)
    location.searchParams.set('code', code)
    return location.href
  }

  #readCookie(state: string, cookies: string): z.infer<typeof Begun> {
    const { sessions, audience, now } = this.#auth
    const prefix = `sso_${state}=`
    const cookie = cookies.split(/; */).find((each) => each.startsWith(prefix)) ?? ''
    const claims = sessions.read(cookie.slice(prefix.length), `${audience} ${state}`)
    const { data: begun } = Begun.safeParse(claims)
    if (begun && begun.exp * 1000 > now()) return begun
    throw errors.notBegun() // A missing and a forged cookie get the same error.
  }

  // One cookie for each login: two can run in one browser at the same time.
  #cookie(state: string, value: string, seconds: number): string {
    const { protocol, pathname } = new URL(this.#config.baseUrl)
    const path = `${pathname.replace(/\/$/, '')}/api/auth/oidc`
    const secure = protocol === 'https:' ? '; Secure' : ''
    return `sso_${state}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
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
      throw isOutage(error) ? errors.providerAway() : errors.loginFailed()
    }
  }
}

/** A person as the provider describes it: name and groups from the ID token, else from userinfo. */
async function identityOf(
  provider: client.Configuration,
  tokens: Awaited<ReturnType<typeof client.authorizationCodeGrant>>,
  { usernameClaim, groupsClaim }: OidcConfig,
) {
  const claims = tokens.claims()
  if (!claims) throw new Error('The provider sent no ID token')
  const isComplete = usernameClaim in claims && groupsClaim in claims
  const more =
    isComplete || !provider.serverMetadata().userinfo_endpoint
      ? {}
      : await client.fetchUserInfo(provider, tokens.access_token, claims.sub)
  const all: client.IDToken = { ...more, ...claims }
  const { iss: issuer, sub: subject, [usernameClaim]: name, [groupsClaim]: groups } = all
  // Security: where the provider does not verify addresses, anyone could enter somebody else's.
  const isUnverified = usernameClaim === 'email' && all.email_verified === false
  return {
    issuer,
    subject, // Permanent, unlike the name.
    name: typeof name === 'string' && !isUnverified ? name : '',
    groups: [groups].flat().filter((group) => typeof group === 'string'),
  }
}

/**
 * The user of an identity. The first login binds the username to the identity.
 * @throws {HttpError} 403 `not_allowed` if the username is invalid, bound to another identity, or barred.
 */
async function bindUser(users: Users, identity: Identity, role: Role): Promise<User> {
  const { issuer, subject, name } = identity
  const named = Username.safeParse(oidcPrefix + name)
  if (name === '' || !named.success)
    throw errors.notAllowed('The provider sent no name that can be a username: ask the operator')
  const username = named.data
  const isBound = ({ oidc }: User) => oidc?.issuer === issuer && oidc.subject === subject
  const known = await users.find(username)
  if (known && isBound(known) && known.role === role) return known
  return changeUser(users, username, (before) => {
    if (before && !isActive(before)) throw errors.notAllowed(`${username} was removed: ask the operator`)
    if (before?.oidc?.subject !== undefined && !isBound(before))
      throw errors.notAllowed(`${username} is another person's: ask the operator`)
    return {
      created_at: new Date().toISOString(),
      id: randomUUID(),
      ...before,
      username,
      role,
      oidc: { issuer, subject },
    }
  })
}

async function discover({ issuer, clientId, clientSecret }: OidcConfig) {
  const url = new URL(issuer)
  const configuration = await client.discovery(
    url,
    clientId,
    undefined,
    clientSecret === undefined ? client.None() : sendSecret(clientSecret),
    // Plain http only for a provider on loopback; the setting rejects any other.
    { timeout: 10, execute: isLoopback(url) ? [client.allowInsecureRequests] : [] },
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

// The provider is unreachable, as opposed to a refusal or an invalid token.
const isOutage = (error: unknown): boolean =>
  error instanceof TypeError ||
  (error instanceof client.ClientError && /^OAUTH_(?:TIMEOUT|RESPONSE_IS_NOT_(?:CONFORM|JSON))$/.test(error.code ?? ''))

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')
