import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { name, type Sql, sql } from '@domains-and-files/persistence'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { clockMarginMs } from '../one-time.ts'
import { type Caller, callerOfUser, limitsOf, Role } from '../rights.ts'
import type { Trust, Trusts } from '../trusts/trusts.ts'
import { activeUserOf, usersTable } from '../users/sql-users.ts'
import { trustPrefix, type User, type Users } from '../users/user.ts'

const Claims = z.object({
  sub: z.string(),
  jti: z.string(),
  exp: z.int().max(8_640_000_000_000), // The last second that a Date can hold.
  nbf: z.number().optional(),
  pwd: z.string().default(''),
  // Of single sign-on: the rights of that login. A local user has the ones of the store.
  role: Role.default('viewer'),
  domains: z.array(z.string()).optional(),
  folders: z.array(z.string()).optional(),
  // Of a workload: the id of its trust, and its name at the issuer.
  trust: z.string().optional(),
  workload: z.string().default(''),
})

/** Why a token is rejected. */
type RejectedToken = 'invalid' | 'expired'

interface SessionTokenOptions {
  audience: string
  secret: string
  /** Also accepted: it signed tokens before `secret` took its place. */
  previousSecret?: string | undefined
  ttl: number
  now: () => number
  endings: SessionEndings
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

/** Issues and verifies session tokens. A token grants what its user may do now, and dies with the user's password. */
export class SessionTokens {
  readonly #jwt: FastifyInstance['jwt']
  readonly #options: SessionTokenOptions
  /** Claims by token, for valid signatures only: those cannot change. All else is checked on each call. */
  readonly #signed = new Map<string, z.infer<typeof Claims>>()
  /** The newest first. */
  readonly #secrets: string[]
  readonly #fingerprints = new WeakMap<User, string[]>()

  constructor(jwt: FastifyInstance['jwt'], options: SessionTokenOptions) {
    this.#jwt = jwt
    this.#options = options
    const { secret, previousSecret } = options
    this.#secrets = previousSecret ? [secret, previousSecret] : [secret]
  }

  /** A new token. That of a single sign-on holds the rights of `user`, which are those of this login. */
  issue(user: User): string {
    const claims = {
      sub: user.username,
      role: user.role,
      ...(user.oidc && limitsOf(user)),
      pwd: this.#fingerprintsOf(user)[0],
    }
    return this.#sign(claims, this.#options.ttl)
  }

  /** A new token for a workload, which counts as long as its trust. */
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

  /** The caller that this token identifies. The rights of a local user come from the users, not from the token. */
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
    const { user, ending } = await this.#options.endings.find(claims.jti, claims.sub)
    if (!user || ending?.password === null) return 'invalid'
    const passwords = [claims.pwd, ...(ending ? [ending.password] : [])]
    if (!passwords.some((password) => this.#isOfPassword(user, password))) return 'invalid'
    return {
      ...callerOfUser(user.oidc ? { ...user, role: claims.role, ...limitsOf(claims) } : user),
      expiresAt,
      session: claims.jti,
    }
  }

  /** Ends a session now, at every replica. */
  async end(session: Session): Promise<void> {
    await this.#options.endings.add({ ...session, password: null })
  }

  /** Lets a session outlive a change of its user's password. Call it before the change. */
  async keep(session: Session, user: User): Promise<void> {
    const [password = ''] = this.#fingerprintsOf(user)
    await this.#options.endings.add({ ...session, password })
  }

  #read(token: string) {
    const known = this.#signed.get(token)
    if (known || token.length > maxTokenLength) return known
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

  #isOfPassword(user: User, sent: string) {
    return this.#fingerprintsOf(user).some(
      (fingerprint) =>
        sent.length === fingerprint.length &&
        timingSafeEqual(Buffer.from(sent), Buffer.from(fingerprint)),
    )
  }

  // By each secret. A new password has a new salt, so this ends a user's tokens even when the same password is set again.
  #fingerprintsOf(user: User): string[] {
    const known = this.#fingerprints.get(user)
    if (known) return known
    const parts = [user.username, user.password ?? user.id, ...(user.logins ? [user.logins] : [])]
    const text = ['password of a token', ...parts].join('\0')
    const made = this.#secrets.map((secret) =>
      createHmac('sha256', secret).update(text).digest().subarray(0, 16).toString('base64url'),
    )
    this.#fingerprints.set(user, made)
    return made
  }
}

interface Session {
  id: string
  /** Milliseconds since 1970. */
  expires_at: number
}

interface Ending extends Session {
  /** The fingerprint of the password with which the session goes on, too; null: it has ended. */
  password: string | null
}

const table = name('ended_sessions')

interface EndingsOptions {
  database: Sql
  users: Pick<Users, 'find'>
  /** Milliseconds since 1970. */
  now: () => number
}

interface Found {
  user: User | undefined
  ending: Ending | undefined
}

/** Sessions that ended before they expire, or outlived a change of the password. */
export class SessionEndings {
  readonly #options: EndingsOptions
  /** All of them, where one process alone has the database. Replicas read it for each request. */
  readonly #known: Map<string, Ending> | undefined

  private constructor(options: EndingsOptions, known: Ending[] | undefined) {
    this.#options = options
    this.#known = known && new Map(known.map((ending) => [ending.id, ending]))
  }

  static async open(options: EndingsOptions): Promise<SessionEndings> {
    const { database } = options
    if (database.dialect === 'postgres') return new SessionEndings(options, undefined)
    return new SessionEndings(options, await database.all<Ending>(sql`select * from ${table}`))
  }

  /** What is known of a session of this user, and the user, in one query. */
  async find(id: string, username: string): Promise<Found> {
    const { database, users } = this.#options
    if (this.#known) return { user: await users.find(username), ending: this.#known.get(id) }
    const row = await database.get<{ definition: string; id: string | null } & Omit<Ending, 'id'>>(
      sql`select definition, id, password, expires_at from ${usersTable}
        left join ${table} on id = ${id} where username = ${username}`,
    )
    if (!row) return { user: undefined, ending: undefined }
    return { user: activeUserOf(row), ending: row.id === null ? undefined : { ...row, id: row.id } }
  }

  /** Also forgets sessions that have expired. */
  async add(ending: Ending): Promise<void> {
    const { id, password, expires_at: expiresAt } = ending
    const { database, now } = this.#options
    await database.transaction(async (transaction) => {
      await transaction.run(sql`delete from ${table} where expires_at <= ${now() - clockMarginMs}`)
      await transaction.run(
        sql`insert into ${table} (id, password, expires_at) values (${id}, ${password}, ${expiresAt})
          on conflict (id) do update set password = excluded.password
          where ended_sessions.password is not null`,
      )
    })
    for (const known of this.#known?.values() ?? [])
      if (known.expires_at <= now()) this.#known?.delete(known.id)
    if (this.#known?.get(id)?.password !== null) this.#known?.set(id, ending)
  }
}

const issuer = 'domains-and-files'
const maxWorkloadS = 900
const maxTokenLength = 8192 // With limits to many domains.
const maxCached = 1000
