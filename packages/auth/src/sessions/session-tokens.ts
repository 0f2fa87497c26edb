import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type Caller, callerOfUser } from '../rights.ts'
import type { User } from '../users/user.ts'

const Claims = z.object({
  sub: z.string(),
  exp: z.int().max(8_640_000_000_000), // The last second that a Date can hold.
  nbf: z.number().optional(),
  pwd: z
    .string()
    .default('')
    .transform((text) => Buffer.from(text, 'base64url')),
})

/** Why a token is rejected. */
export type RejectedToken = 'invalid' | 'expired'

interface SessionTokenOptions {
  secret: string
  ttl: number
  now: () => number
  find: (username: string) => Promise<User | undefined>
}

/** Options of @fastify/jwt that pin algorithm, issuer and audience. `SessionTokens` checks times, with its own clock. */
export const jwtOptions = (secret: string, audience: string) => ({
  secret,
  sign: { algorithm: 'HS256' as const, iss: issuer, aud: audience },
  verify: {
    algorithms: ['HS256' as const],
    allowedIss: issuer,
    allowedAud: audience,
    requiredClaims: ['iss', 'aud', 'sub', 'exp'],
    checkTyp: 'JWT',
    cache: false,
    ignoreExpiration: true,
    ignoreNotBefore: true,
  },
})

/** Issues and verifies session tokens. A token grants what its user may do now, and dies with the user's password. */
export class SessionTokens {
  readonly #jwt: FastifyInstance['jwt']
  readonly #options: SessionTokenOptions
  /** Claims by token, for valid signatures only: those cannot change. All else is checked on each call. */
  readonly #signed = new Map<string, z.infer<typeof Claims>>()
  readonly #fingerprints = new WeakMap<User, Buffer>()

  constructor(jwt: FastifyInstance['jwt'], options: SessionTokenOptions) {
    this.#jwt = jwt
    this.#options = options
  }

  issue(user: User): string {
    const iat = Math.floor(this.#options.now() / 1000)
    const exp = iat + this.#options.ttl
    return this.#jwt.sign({
      sub: user.username,
      role: user.role,
      iat,
      exp,
      pwd: this.#fingerprint(user).toString('base64url'),
    })
  }

  /** The caller that this token identifies. Role and domains come from the users, not from the token. */
  async verify(token: string): Promise<Caller | RejectedToken> {
    const claims = this.#read(token)
    const now = this.#options.now()
    if (!claims || (claims.nbf !== undefined && claims.nbf * 1000 > now)) return 'invalid'
    if (claims.exp * 1000 <= now) return 'expired'

    const user = await this.#options.find(claims.sub)
    if (!user || !this.#isOfPassword(user, claims.pwd)) return 'invalid'
    return { ...callerOfUser(user), expiresAt: new Date(claims.exp * 1000) }
  }

  #read(token: string) {
    const known = this.#signed.get(token)
    if (known || token.length > maxTokenLength) return known
    try {
      const claims = Claims.parse(this.#jwt.verify(token))
      if (this.#signed.size >= maxCached) this.#signed.clear()
      this.#signed.set(token, claims)
      return claims
    } catch {
      return undefined // The sender learns only that it is invalid.
    }
  }

  #isOfPassword(user: User, sent: Buffer) {
    const fingerprint = this.#fingerprint(user)
    return sent.length === fingerprint.length && timingSafeEqual(sent, fingerprint)
  }

  // A new password has a new salt, so this ends a user's tokens even when the same password is set again.
  #fingerprint(user: User): Buffer {
    const known = this.#fingerprints.get(user)
    if (known) return known
    const text = `password of a token\0${user.username}\0${user.password}`
    const hmac = createHmac('sha256', this.#options.secret).update(text)
    const fingerprint = hmac.digest().subarray(0, 16)
    this.#fingerprints.set(user, fingerprint)
    return fingerprint
  }
}

const issuer = 'domains-and-files'
const maxTokenLength = 4096
const maxCached = 1000
