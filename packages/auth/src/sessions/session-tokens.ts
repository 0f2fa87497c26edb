import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Sql, sql } from '@domains-and-files/persistence'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type OneTime, oneTimeTable } from '../one-time.ts'
import { type Caller, callerOfUser, limitsOf, Role } from '../rights.ts'
import type { Trust, Trusts } from '../trusts/trusts.ts'
import { activeUserOf, usersTable } from '../users/sql-users.ts'
import { keptSessionOf, trustPrefix, type User, type Users } from '../users/user.ts'

const Claims = z.object({
  sub: z.string(),
  jti: z.string(),
  exp: z.int().max(8_640_000_000_000), // The last second that a Date can hold.
  nbf: z.number().optional(),
  pwd: z.string().default(''),
  // Single sign-on: the rights of that login. Local users: ignored in favour of the store.
  role: Role.default('viewer'),
  domains: z.array(z.string()).optional(),
  folders: z.array(z.string()).optional(),
  // Workload: the id of its trust, and its subject at the issuer.
  trust: z.string().optional(),
  workload: z.string().default(''),
})

/** Why a token is rejected. */
type RejectedToken = 'invalid' | 'expired'

interface SessionTokenOptions {
  audience: string
  secret: string
  /** Secret before the last rotation: tokens that it signed are still accepted. */
  previousSecret?: string | undefined
  ttl: number
  now: () => number
  database: Sql
  users: Pick<Users, 'find'>
  /** Stores sessions that were ended before their expiry. */
  oneTime: OneTime
  trusts: Trusts
}

/** Options of @fastify/jwt that pin algorithm, issuer and audience. `SessionTokens` checks times, with its own clock. */
export const jwtOptions = (secret: string, audience: string) => ({
  secret,
  sign: { algorithm: 'HS256' as const, iss: issuer, aud: audience },
  verify: verifyOptions(audience),
})

const verifyOptions = (audience: string) => ({
  algorithms: ['HS256' as const],
  allowedIss: issuer,
  allowedAud: audience,
  requiredClaims: ['iss', 'aud', 'sub', 'exp', 'jti'],
  checkTyp: 'JWT',
  cache: false,
  ignoreExpiration: true,
  ignoreNotBefore: true,
})

/** Issues and verifies session tokens. A new password of the user ends them. */
export class SessionTokens {
  readonly #jwt: FastifyInstance['jwt']
  readonly #options: SessionTokenOptions
  /** Cache: claims by token whose signature is valid. All other checks run on each call. */
  readonly #signed = new Map<string, z.infer<typeof Claims>>()
  /** The newest first. */
  readonly #secrets: string[]
  readonly #accounts = new WeakMap<User, { caller: Caller; fingerprints: Buffer[] }>()

  constructor(jwt: FastifyInstance['jwt'], options: SessionTokenOptions) {
    this.#jwt = jwt
    this.#options = options
    const { secret, previousSecret } = options
    this.#secrets = previousSecret ? [secret, previousSecret] : [secret]
  }

  /** A new token. For single sign-on it contains the rights of `user`, as granted by this login. */
  issue(user: User): string {
    const claims = {
      sub: user.username,
      role: user.role,
      ...(user.oidc && limitsOf(user)),
      pwd: this.#accountOf(user).fingerprints[0]?.toString(),
    }
    return this.#sign(claims, this.#options.ttl)
  }

  /** A new token for a workload. Removing the trust ends it. */
  issueForWorkload({ id, name, role }: Trust, workload: string) {
    const expires_in = Math.min(maxWorkloadS, this.#options.ttl)
    const claims = { sub: trustPrefix + name, role, trust: id, workload }
    return { access_token: this.#sign(claims, expires_in), expires_in }
  }

  #sign(claims: object, ttl: number): string {
    const iat = Math.floor(this.#options.now() / 1000)
    const jti = randomBytes(12).toString('base64url')
    return this.#jwt.sign({ ...claims, iat, exp: iat + ttl, jti })
  }

  /** The caller that this token identifies. Local users have the rights of the store, not of the token. */
  async verify(token: string): Promise<Caller | RejectedToken> {
    const claims = this.#read(token)
    const now = this.#options.now()
    if (!claims || (claims.nbf !== undefined && claims.nbf * 1000 > now)) return 'invalid'
    if (claims.exp * 1000 <= now) return 'expired'

    const expiresAt = new Date(claims.exp * 1000)
    if (claims.trust !== undefined) {
      const caller = await this.#options.trusts.findCaller(claims.trust, claims.workload)
      return caller ? { ...caller, expiresAt } : 'invalid'
    }
    const user = await this.#userOf(claims)
    if (!user) return 'invalid'
    const { caller, fingerprints } = this.#accountOf(user)
    const isKept = user.kept !== undefined && user.kept === keptSessionOf(user, claims.jti)
    const sent = Buffer.from(claims.pwd)
    const isOfPassword = fingerprints.some(
      (each) => each.length === sent.length && timingSafeEqual(each, sent),
    )
    if (!isKept && !isOfPassword) return 'invalid'
    return {
      ...(user.oidc ? { ...caller, role: claims.role, ...limitsOf(claims) } : caller),
      expiresAt,
      session: claims.jti,
    }
  }

  /** Ends the session of a caller now, at every replica. */
  async end({ session = '', expiresAt }: Caller): Promise<void> {
    await this.#options.oneTime.put(session, '', expiresAt?.getTime() ?? 0)
  }

  /** The user; undefined if removed, barred, or the session has ended. PostgreSQL: one query for both. */
  async #userOf({ jti, sub }: z.infer<typeof Claims>): Promise<User | undefined> {
    const { database, users, oneTime } = this.#options
    if (database.dialect !== 'postgres')
      return (await oneTime.has(jti)) ? undefined : users.find(sub)
    const row = await database.get<{ definition: string }>(
      sql`select definition from ${usersTable} where username = ${sub}
        and not exists (select 1 from ${oneTimeTable} where id = ${jti})`,
    )
    return row && activeUserOf(row)
  }

  #read(token: string) {
    const known = this.#signed.get(token)
    if (known || token.length > maxTokenLength || !isCanonical(token)) return known
    for (const key of this.#secrets) {
      try {
        const options = { ...verifyOptions(this.#options.audience), key }
        const claims = Claims.parse(this.#jwt.verify(token, options))
        if (this.#signed.size >= maxCached) this.#signed.clear()
        this.#signed.set(token, claims)
        return claims
      } catch {} // The sender learns only that it is invalid.
    }
    return undefined
  }

  // Password fingerprints, one for each secret. A new hash has a new salt, so setting even the same password again ends
  // the user's tokens.
  #accountOf(user: User) {
    const known = this.#accounts.get(user)
    if (known) return known
    const parts = [user.username, user.password ?? user.id, ...(user.logins ? [user.logins] : [])]
    const text = ['password of a token', ...parts].join('\0')
    const fingerprints = this.#secrets.map((secret) => {
      const digest = createHmac('sha256', secret).update(text).digest()
      return Buffer.from(digest.toString('base64url', 0, 16))
    })
    const account = { caller: callerOfUser(user), fingerprints }
    this.#accounts.set(user, account)
    return account
  }
}

// Base64url leaves unused bits in the last character, so one signature would have several accepted spellings.
function isCanonical(token: string) {
  const signature = token.slice(token.lastIndexOf('.') + 1)
  return Buffer.from(signature, 'base64url').toString('base64url') === signature
}

const issuer = 'domains-and-files'
const maxWorkloadS = 900
const maxTokenLength = 8192 // With limits to many domains.
const maxCached = 1000
