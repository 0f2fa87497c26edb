import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Caller } from '../authorization.ts'
import type { User } from '../users/users-file.ts'

const Claims = z.object({
  sub: z.string(),
  exp: z.int().max(8_640_000_000_000), // the last second that a Date can hold
  nbf: z.number().optional(),
  pwd: z.string().optional(),
})

/** Why a token is not taken. */
export type RejectedToken = 'invalid' | 'expired'

interface TokenOptions {
  secret: string
  ttl: number
  now: () => number
  find: (username: string) => User | undefined
}

/** Options of @fastify/jwt that pin what a token may be. Its times are checked in `Tokens`, by a clock handed in. */
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

/** Issues tokens and takes them back. A token is worth no more than its user and that user's password are now. */
export class Tokens {
  readonly #jwt: FastifyInstance['jwt']
  readonly #options: TokenOptions
  /** What tokens say whose signature was found right: that cannot change. All else is looked at each time. */
  readonly #signed = new Map<string, z.infer<typeof Claims>>()
  readonly #fingerprints = new WeakMap<User, Buffer>()

  constructor(jwt: FastifyInstance['jwt'], options: TokenOptions) {
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

  /** Who sent this token: with the role that the users file gives now, not the one in the token. */
  verify(token: string): Caller | RejectedToken {
    const claims = this.#read(token)
    const now = this.#options.now()
    if (!claims || (claims.nbf !== undefined && claims.nbf * 1000 > now)) return 'invalid'
    if (claims.exp * 1000 <= now) return 'expired'

    const user = this.#options.find(claims.sub)
    if (!user || !this.#isOfPassword(user, claims.pwd)) return 'invalid'
    const { username, role, domains } = user
    return { username, role, ...(domains && { domains }), expiresAt: new Date(claims.exp * 1000) }
  }

  #read(token: string) {
    const known = this.#signed.get(token)
    if (known || token.length > longestToken) return known
    try {
      const claims = Claims.parse(this.#jwt.verify(token))
      if (this.#signed.size >= mostSigned) this.#signed.clear()
      this.#signed.set(token, claims)
      return claims
    } catch {
      return undefined // Whatever is wrong with it, the sender learns only that it is not valid.
    }
  }

  #isOfPassword(user: User, sent = '') {
    const fingerprint = this.#fingerprint(user)
    const bytes = Buffer.from(sent, 'base64url')
    return bytes.length === fingerprint.length && timingSafeEqual(bytes, fingerprint)
  }

  // A new password has a new salt, so this ends a user's tokens even when the same words are set again.
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
const longestToken = 4096
const mostSigned = 1000
