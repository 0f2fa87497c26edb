import * as client from 'openid-client'
import { isLoopback } from '../issuer-url.ts'
import type { OidcConfig } from '../settings.ts'
import type { Identity } from './oidc-users.ts'

/** What a login must present at the callback. */
export interface LoginChecks {
  state: string
  nonce: string
  /** Of PKCE between this service and the provider (RFC 7636). */
  verifier: string
}

/** The OpenID provider of the settings. Discovered at the first login; a failed discovery is repeated at the next one. */
export class Provider {
  readonly #config: OidcConfig
  readonly redirectUri: string
  #discovered: Promise<client.Configuration> | undefined

  constructor(config: OidcConfig) {
    this.#config = config
    this.redirectUri = `${config.baseUrl}/api/auth/oidc/callback`
  }

  /** Where the browser goes to log in. */
  async authorizationUrl({ state, nonce, verifier }: LoginChecks): Promise<string> {
    const url = client.buildAuthorizationUrl(await this.#discover(), {
      redirect_uri: this.redirectUri,
      response_type: 'code',
      scope: this.#config.scopes,
      ...{ state, nonce },
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return url.href
  }

  /**
   * Exchanges the code of a callback, and verifies the ID token: signature, issuer, audience, times and nonce.
   * @param query of the callback, with its question mark
   */
  async finish(query: string, { state, nonce, verifier }: LoginChecks): Promise<Identity> {
    const configuration = await this.#discover()
    const tokens = await client.authorizationCodeGrant(
      configuration,
      new URL(this.redirectUri + query),
      {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      },
    )
    const claims = tokens.claims()
    if (!claims) throw new Error('The provider sent no ID token')
    const { usernameClaim, groupsClaim } = this.#config
    const isComplete = usernameClaim in claims && groupsClaim in claims
    const more =
      isComplete || !configuration.serverMetadata().userinfo_endpoint
        ? {}
        : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    return this.#identityOf({ ...more, ...claims })
  }

  #identityOf(claims: client.IDToken): Identity {
    const { usernameClaim, groupsClaim } = this.#config
    const { [usernameClaim]: name, [groupsClaim]: groups } = claims
    // Whoever can enter any address must not be taken for its owner.
    const isUnverified = usernameClaim === 'email' && claims.email_verified === false
    return {
      ...{ issuer: claims.iss, subject: claims.sub },
      name: typeof name === 'string' && !isUnverified ? name : undefined,
      groups: [groups].flat().filter((group) => typeof group === 'string'),
    }
  }

  #discover(): Promise<client.Configuration> {
    this.#discovered ??= discover(this.#config).catch((error: unknown) => {
      this.#discovered = undefined
      throw error
    })
    return this.#discovered
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcConfig) {
  const url = new URL(issuer)
  const configuration = await client.discovery(
    url,
    clientId,
    undefined,
    clientSecret === undefined ? client.None() : sendSecret(clientSecret),
    // Plain http for a provider on this machine only: the setting admits no other.
    { timeout: timeoutS, execute: isLoopback(url) ? [client.allowInsecureRequests] : [] },
  )
  // TLS alone would say who sent the ID token, but not that its algorithm and key are right.
  client.enableNonRepudiationChecks(configuration)
  return configuration
}

// RFC 6749, 2.3.1: in the header, which is the default of providers that do not name their methods.
const sendSecret =
  (secret: string): client.ClientAuth =>
  (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const isBasic = methods.includes('client_secret_basic')
    return (isBasic ? client.ClientSecretBasic : client.ClientSecretPost)(secret)(server, ...rest)
  }

const timeoutS = 10

/** Whether the provider could not be reached or is out of order, rather than that it refused, or what it sent is wrong. */
export const isOutage = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof client.ClientError && outages.has(error.code))

const outages = new Set<string | undefined>([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
])
