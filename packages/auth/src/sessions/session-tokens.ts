import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Sql, sql } from '@domains-and-files/persistence'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
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
  pwd: z.string().default(''),
  // Single sign-on: the rights of that login. Local users: ignored in favour of the store.
  role: Role.default('viewer'),
  domains: z.array(z.string()).optional(),
  folders: z.array(z.string()).optional(),
  // Workload: the id of its trust, and its subject at the issuer.
  trust: z.string().optional(),
  workload: z.string().default(''),
})

interface SessionTokenOptions {
  audience: string
  /** The newest first: it signs. Tokens of the one before the last rotation are still accepted. */
  secrets: string[]
  /** Seconds. */
  ttl: number
  /** Milliseconds since 1970. */
  now: () => number
  database: Sql
  users: Pick<Users, 'find'>
  /** Stores sessions that were ended before their expiry. */
  oneTime: OneTime
  trusts: Trusts
}

/** Issues and verifies session tokens. A new password of the user ends them. */
export class SessionTokens {
  readonly #options: SessionTokenOptions
  /** Cache: claims by token whose signature is valid. All other checks run on each call. */
  readonly #signed = new Map<string, z.infer<typeof Claims>>()
  readonly #fingerprints = new WeakMap<User, string[]>()

  constructor(options: SessionTokenOptions) {
    this.#options = options
  }

  /** A new token. For single sign-on it contains the rights of `user`, as granted by this login. */
  issue(user: User): Promise<string> {
    const [pwd] = this.#fingerprintsOf(user)
    const claims = { sub: user.username, role: user.role, ...(user.oidc && limitsOf(user)), pwd }
    return this.#issue(claims, this.#options.ttl)
  }

  /** A new token for a workload. Removing the trust ends it. */
  async issueForWorkload({ id, name, role }: Trust, workload: string) {
    const expires_in = Math.min(maxWorkloadS, this.#options.ttl)
    const claims = { sub: trustPrefix + name, role, trust: id, workload }
    return { access_token: await this.#issue(claims, expires_in), expires_in }
  }

  #issue(claims: JWTPayload, ttl: number): Promise<string> {
    const jti = randomBytes(12).toString('base64url')
    return this.sign({ ...claims, jti }, { audience: this.#options.audience, ttl })
  }

  /** Signs claims for `ttl` seconds. */
  sign(claims: JWTPayload, { audience, ttl }: { audience: string; ttl: number }): Promise<string> {
    const iat = Math.floor(this.#options.now() / 1000)
    return new SignJWT({ ...claims, iss: issuer, aud: audience, iat, exp: iat + ttl })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .sign(Buffer.from(this.#options.secrets[0] ?? ''))
  }

  /** The claims that `sign` signed for this audience, not checked for their expiry; else undefined. */
  async read(token: string, audience: string): Promise<JWTPayload | undefined> {
    if (token.length > maxTokenLength) return undefined
    const secret = this.#options.secrets.find((each) => isSigned(token, each))
    if (secret === undefined) return undefined
    const options = {
      ...{ audience, issuer, algorithms: ['HS256'], typ: 'JWT' },
      ...{ requiredClaims: ['exp'], currentDate: new Date(0) },
    }
    // The sender learns only that it is invalid.
    const verified = await jwtVerify(token, Buffer.from(secret), options).catch(() => undefined)
    return verified?.payload
  }

  /** The caller that this token identifies. Local users have the rights of the store, not of the token. */
  async verify(token: string): Promise<Caller | 'invalid' | 'expired'> {
    const claims = this.#signed.get(token) ?? (await this.#readClaims(token))
    if (!claims) return 'invalid'
    const expiresAt = new Date(claims.exp * 1000)
    if (expiresAt.getTime() <= this.#options.now()) return 'expired'
    if (claims.trust !== undefined) {
      const caller = await this.#options.trusts.findCaller(claims.trust, claims.workload)
      return caller ? { ...caller, expiresAt } : 'invalid'
    }
    const user = await this.#userOf(claims)
    if (!user) return 'invalid'
    const isKept = user.kept !== undefined && user.kept === keptSessionOf(user, claims.jti)
    if (!isKept && !this.#fingerprintsOf(user).includes(claims.pwd)) return 'invalid'
    const caller = { ...callerOfUser(user), expiresAt, session: claims.jti }
    return user.oidc ? { ...caller, role: claims.role, ...limitsOf(claims) } : caller
  }

  /** Ends the session of a caller now, at every replica. */
  async end({ session = '', expiresAt }: Caller): Promise<void> {
    await this.#options.oneTime.put(session, '', expiresAt?.getTime() ?? 0)
  }

  async #readClaims(token: string) {
    const { data: claims } = Claims.safeParse(await this.read(token, this.#options.audience))
    if (!claims) return undefined
    if (this.#signed.size >= maxCached) this.#signed.clear()
    this.#signed.set(token, claims)
    return claims
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

  // Of the password, by each secret. A new hash has a new salt, so setting even the same password again ends the tokens.
  #fingerprintsOf(user: User): string[] {
    const known = this.#fingerprints.get(user)
    if (known) return known
    const parts = [user.username, user.password ?? user.id, ...(user.logins ? [user.logins] : [])]
    const text = ['password of a token', ...parts].join('\0')
    const fingerprints = this.#options.secrets.map((secret) =>
      createHmac('sha256', secret).update(text).digest().toString('base64url', 0, 16),
    )
    this.#fingerprints.set(user, fingerprints)
    return fingerprints
  }
}

// Before jose, which takes ten times as long for a forged token, and accepts several spellings of a signature: base64url
// leaves unused bits in the last character.
function isSigned(token: string, secret: string): boolean {
  const end = token.lastIndexOf('.')
  const signature = createHmac('sha256', secret).update(token.slice(0, end)).digest('base64url')
  const [sent, right] = [Buffer.from(token.slice(end + 1)), Buffer.from(signature)]
  return sent.length === right.length && timingSafeEqual(sent, right)
}

const issuer = 'domains-and-files'
const maxWorkloadS = 900
const maxTokenLength = 8192 // With limits to many domains.
const maxCached = 4000
