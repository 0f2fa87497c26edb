import * as jose from 'jose'
import { z } from 'zod'
import * as errors from '../errors.ts'
import { isPrivateUrl } from '../settings.ts'
import type { Trust } from './trusts.ts'

const leewayS = 60

/** Verifies tokens of workloads by the keys of their issuers (RFC 7517; RFC 8725). */
export class WorkloadTokens {
  readonly #keys = new Map<string, jose.JWTVerifyGetKey>()

  /**
   * The trust that admits a token (of several, the one with the most claims), and the `subject` of the token.
   * `identity` is equal for all spellings of one token; `endsAt` is the end of its validity, clock leeway included.
   * Instants are milliseconds since 1970.
   * @throws {TokenRefusedError} for a token that no trust admits now; {HttpError} 503 if its keys cannot be fetched.
   */
  async verify(token: string, trusts: Trust[], now: number) {
    const issuer = issuerOf(token)
    const ofIssuer = trusts.filter((trust) => trust.issuer === issuer)
    if (ofIssuer.length === 0) throw new errors.TokenRefusedError(`no trust has the issuer ${issuer}`)
    const { payload } = await jose
      .jwtVerify(token, this.#keysOf(issuer), {
        issuer,
        audience: ofIssuer.map(({ audience }) => audience),
        algorithms: ['RS256', 'ES256', 'EdDSA'],
        requiredClaims: ['exp'],
        clockTolerance: leewayS,
        currentDate: new Date(now),
      })
      .catch((error: unknown) => {
        throw explain(error, issuer)
      })
    const { sub: subject, iat = 0, exp = 0, jti } = payload
    if (iat > now / 1000 + leewayS) throw new errors.TokenRefusedError('it was issued in the future')
    if (typeof subject !== 'string' || !/^[^\p{Cc}\p{Cs}]{1,500}$/u.test(subject))
      throw new errors.TokenRefusedError('it has no usable sub')
    const [trust] = ofIssuer
      .filter((each) => admits(each, payload))
      .sort((one, other) => Object.keys(other.claims).length - Object.keys(one.claims).length)
    if (!trust) throw new errors.TokenRefusedError(`no trust has the audience and claims of ${subject}`)
    return {
      trust,
      subject,
      // Without the signature, which has several base64url spellings; the signed part has one.
      identity: jti ? `jti ${issuer} ${jti}` : `jws ${token.slice(0, token.lastIndexOf('.'))}`,
      endsAt: Math.min(Math.ceil((exp + leewayS) * 1000), Number.MAX_SAFE_INTEGER),
    }
  }

  // Fetched again at most once a minute, for an unknown key.
  #keysOf(issuer: string): jose.JWTVerifyGetKey {
    const known = this.#keys.get(issuer)
    if (known) return known
    const discovery = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const keys = jose.createRemoteJWKSet(new URL(discovery), {
      timeoutDuration: 5_000,
      cooldownDuration: 60_000,
      cacheMaxAge: 600_000,
      [jose.customFetch]: fetchKeys(issuer),
    })
    this.#keys.set(issuer, keys)
    return keys
  }
}

const Metadata = z.object({
  issuer: z.string(),
  jwks_uri: z.string().refine((text) => URL.canParse(text) && isPrivateUrl(new URL(text))),
})

/** Fetches the metadata of an issuer (OpenID Connect Discovery 1.0, 4), and then the keys that it names. */
const fetchKeys =
  (issuer: string): jose.FetchImplementation =>
  async (url, options) => {
    const request = { ...options, redirect: 'error' as const }
    const response = await fetch(url, request)
    const metadata = Metadata.parse(await response.json())
    if (metadata.issuer !== issuer) throw new Error(`${url} is of the issuer ${metadata.issuer}`)
    return fetch(metadata.jwks_uri, request)
  }

/** The issuer that a token claims to be from. Unverified. */
function issuerOf(token: string): string {
  try {
    return jose.decodeJwt(token).iss ?? ''
  } catch {
    throw new errors.TokenRefusedError('it is no JWT')
  }
}

const admits = ({ audience, claims }: Trust, payload: jose.JWTPayload) =>
  [payload.aud].flat().includes(audience) &&
  Object.entries(claims).every(([claim, wanted]) => Object.hasOwn(payload, claim) && payload[claim] === wanted)

// jose gives faults of the token specific codes. Otherwise the keys could not be fetched, or are invalid.
function explain(cause: unknown, issuer: string): Error {
  const isOfToken =
    cause instanceof jose.errors.JOSEError &&
    !['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC'].includes(cause.code)
  return isOfToken
    ? new errors.TokenRefusedError(cause.message)
    : errors.issuerAway(new Error(`The keys of ${issuer} cannot be fetched`, { cause }))
}
