import { createRemoteJWKSet, decodeJwt, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { z } from 'zod'
import { issuerAway, TokenRefusedError } from '../errors.ts'
import { isPrivateUrl } from '../issuer-url.ts'

const cacheMs = 600_000
const refetchMs = 60_000
const timeoutMs = 5_000
const leewayS = 60
const maxSubjectLength = 500

/** A verified token of a workload. */
export interface WorkloadToken {
  subject: string
  audiences: string[]
  claims: Record<string, unknown>
  /** Equal for all spellings of one token. */
  identity: string
  /** End of validity, clock leeway included, in milliseconds since 1970. */
  endsAt: number
}

/** Verifies tokens of issuers by their published keys (OpenID Connect Discovery 1.0; RFC 7517; RFC 8725). */
export class IssuerKeys {
  readonly #known = new Map<string, { until: number; keys: Promise<JWTVerifyGetKey> }>()

  /** The issuer that a token claims to be from. Unverified. @throws {TokenRefusedError} if it is no JWT. */
  issuerOf(token: string): string {
    try {
      return decodeJwt(token).iss ?? ''
    } catch {
      throw new TokenRefusedError('it is no JWT')
    }
  }

  /**
   * @param audiences the token must have at least one of these
   * @param now in milliseconds since 1970
   * @throws {TokenRefusedError} for a token that is not valid now; {HttpError} 503 if its keys cannot be fetched.
   */
  async verify(
    token: string,
    { issuer, audiences, now }: { issuer: string; audiences: string[]; now: number },
  ): Promise<WorkloadToken> {
    const keys = await this.#keysOf(issuer)
    const { payload } = await jwtVerify(token, keys, {
      ...{ issuer, audience: audiences, algorithms: ['RS256', 'ES256', 'EdDSA'] },
      ...{ requiredClaims: ['exp'], clockTolerance: leewayS, currentDate: new Date(now) },
    }).catch((error: unknown) => {
      throw explain(error)
    })
    const { sub = '', iat = 0, exp = 0, jti, aud = [] } = payload
    if (iat > now / 1000 + leewayS) throw new TokenRefusedError('it was issued in the future')
    if (sub === '' || sub.length > maxSubjectLength || /[\p{Cc}\p{Cs}]/u.test(sub))
      throw new TokenRefusedError('it has no usable sub')
    return {
      ...{ subject: sub, audiences: [aud].flat(), claims: payload },
      // Without the signature, which has several base64url spellings; the signed part has one.
      identity: jti ? `jti ${issuer} ${jti}` : `jws ${token.slice(0, token.lastIndexOf('.'))}`,
      endsAt: Math.min(Math.ceil((exp + leewayS) * 1000), Number.MAX_SAFE_INTEGER),
    }
  }

  #keysOf(issuer: string): Promise<JWTVerifyGetKey> {
    const known = this.#known.get(issuer)
    if (known && known.until > performance.now()) return known.keys
    const keys = discoverKeys(issuer)
    this.#known.set(issuer, { until: performance.now() + cacheMs, keys })
    keys.catch(() => this.#known.delete(issuer))
    return keys
  }
}

const Metadata = z.object({
  issuer: z.string(),
  jwks_uri: z.string().refine((text) => URL.canParse(text) && isPrivateUrl(new URL(text))),
})

async function discoverKeys(issuer: string): Promise<JWTVerifyGetKey> {
  try {
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const metadata = Metadata.parse(await response.json())
    if (metadata.issuer !== issuer) throw new Error(`${url} is of the issuer ${metadata.issuer}`)
    return createRemoteJWKSet(new URL(metadata.jwks_uri), {
      ...{ timeoutDuration: timeoutMs, cooldownDuration: refetchMs, cacheMaxAge: cacheMs },
    })
  } catch (cause) {
    throw issuerAway(new Error(`The issuer ${issuer} cannot be discovered`, { cause }))
  }
}

// jose gives faults of the token specific codes. Otherwise the keys could not be fetched, or are invalid.
function explain(error: unknown): Error {
  const isOfToken =
    error instanceof errors.JOSEError &&
    !['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC'].includes(error.code)
  return isOfToken ? new TokenRefusedError(error.message) : issuerAway(error)
}
