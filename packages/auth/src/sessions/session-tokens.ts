import { createHmac, randomBytes } from 'node:crypto'
import { type Sql, sql } from '@domains-and-files/persistence'
import type { FastifyJWTOptions, JWT } from '@fastify/jwt'
import { z } from 'zod'
import * as errors from '../errors.ts'
import { type OneTime, oneTimeTable } from '../one-time.ts'
import { type Caller, callerOfUser, limitsOf, Role } from '../rights.ts'
import { findWorkload, type Trust } from '../trusts/trusts.ts'
import { activeUserOf, usersTable } from '../users/sql-users.ts'
import { keptSessionOf, trustPrefix, type User, type Users } from '../users/user.ts'

const Claims = z.object({
  sub: z.string(),
  jti: z.string(),
  exp: z.int().max(8_640_000_000_000), // The last second that a Date can hold.
  nbf: z.number().default(0),
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
  now: () => number
  database: Sql
  users: Pick<Users, 'find'>
  /** Stores sessions that were ended before their expiry. */
  oneTime: OneTime
}

interface SignedToken {
  claims: z.infer<typeof Claims>
  /** The user as last found, and the caller that it makes with these claims. */
  user?: User
  caller?: Caller
}

/** Issues and verifies session tokens. A new password of the user ends them. */
export class SessionTokens {
  readonly #options: SessionTokenOptions
  /** Cache: tokens whose signature is valid. Each call still looks for the user, and for the end of the session. */
  readonly #signed = new Map<string, SignedToken>()
  #jwt: JWT | undefined

  constructor(options: SessionTokenOptions) {
    this.#options = options
  }

  /** For @fastify/jwt: these pin algorithm, issuer and type. Times are checked here, by the clock of the service. */
  get jwtOptions(): FastifyJWTOptions {
    const [secret = ''] = this.#options.secrets
    return { secret, sign: { algorithm: 'HS256', iss: issuer }, verify: verifyOptions }
  }

  /** Call it before all others, with what @fastify/jwt made of `jwtOptions`. */
  use(jwt: JWT) {
    this.#jwt = jwt
  }

  /** A new token. For single sign-on it contains the rights of `user`, as granted by this login. */
  issue(user: User): string {
    const [pwd] = this.#fingerprintsOf(user)
    const claims = { sub: user.username, role: user.role, ...(user.oidc && limitsOf(user)), pwd }
    return this.sign(claims, this.#options)
  }

  /** A new token for a workload. Removing the trust ends it. */
  issueForWorkload({ id, name, role }: Trust, workload: string) {
    const { audience, ttl } = this.#options
    const expires_in = Math.min(maxWorkloadS, ttl)
    const claims = { sub: trustPrefix + name, role, trust: id, workload }
    return { access_token: this.sign(claims, { audience, ttl: expires_in }), expires_in }
  }

  sign(claims: object, { audience, ttl }: { audience: string; ttl: number }): string {
    const jti = randomBytes(12).toString('base64url')
    const iat = Math.floor(this.#options.now() / 1000)
    return this.#signer.sign({ ...claims, jti, iat, exp: iat + ttl }, { aud: audience })
  }

  /** The claims that `sign` signed for this audience, not checked for their expiry; else undefined. */
  read(token: string, audience: string): unknown {
    if (token.length > maxTokenLength || !isCanonical(token)) return undefined
    for (const key of this.#options.secrets) {
      try {
        return this.#signer.verify(token, { ...verifyOptions, allowedAud: audience, key })
      } catch {} // The sender learns only that it is invalid.
    }
    return undefined
  }

  get #signer(): JWT {
    if (!this.#jwt) throw new Error('sessions need the plugin')
    return this.#jwt
  }

  /** The caller that this token identifies, even if it has expired. @throws {HttpError} 401 */
  async identify(token: string): Promise<Caller> {
    const { now, database } = this.#options
    const signed = this.#signed.get(token) ?? this.#readSigned(token)
    if (!signed || signed.claims.nbf * 1000 > now()) throw errors.tokenInvalid()
    const { exp, trust, workload } = signed.claims
    const caller = trust === undefined ? await this.#callerOf(signed) : await findWorkload(database, trust, workload)
    if (!caller) throw errors.tokenInvalid()
    return { ...caller, expiresAt: new Date(exp * 1000) }
  }

  /** Ends the session of a caller now, at every replica. */
  async end({ session = '', expiresAt }: Caller): Promise<void> {
    await this.#options.oneTime.put(session, '', expiresAt?.getTime() ?? 0)
  }

  #readSigned(token: string): SignedToken | undefined {
    const { data: claims } = Claims.safeParse(this.read(token, this.#options.audience))
    if (!claims) return undefined
    if (this.#signed.size >= maxCached) this.#signed.clear()
    const signed = { claims }
    this.#signed.set(token, signed)
    return signed
  }

  /** Undefined: the user was removed or barred, or the session has ended. */
  async #callerOf(signed: SignedToken): Promise<Caller | undefined> {
    const { database, users, oneTime } = this.#options
    const { jti, sub, pwd, ...granted } = signed.claims
    let user: User | undefined
    if (!oneTime.known) {
      // One query for both.
      const row = await database.get<{ definition: string }>(
        sql`select definition from ${usersTable} where username = ${sub}
          and not exists (select 1 from ${oneTimeTable} where id = ${jti})`,
      )
      user = row && activeUserOf(row)
    } else if (!oneTime.known.has(jti)) user = await users.find(sub)
    if (!user) return undefined
    if (user === signed.user) return signed.caller
    const isKept = user.kept !== undefined && user.kept === keptSessionOf(user, jti)
    const isCurrent = isKept || this.#fingerprintsOf(user).includes(pwd)
    // Local users have the rights of the store, not of the token.
    const rights = user.oidc && { role: granted.role, ...limitsOf(granted) }
    const caller = isCurrent ? { ...callerOfUser(user), ...rights, session: jti } : undefined
    Object.assign(signed, { user, caller })
    return caller
  }

  // Of the password, by each secret. A new hash has a new salt, so setting even the same password again ends the tokens.
  #fingerprintsOf(user: User): string[] {
    const parts = [user.username, user.password ?? user.id, ...(user.logins ? [user.logins] : [])]
    const text = ['password of a token', ...parts].join('\0')
    return this.#options.secrets.map((secret) =>
      createHmac('sha256', secret).update(text).digest().toString('base64url', 0, 16),
    )
  }
}

// Base64url leaves unused bits in the last character, so one signature would have several accepted spellings.
function isCanonical(token: string) {
  const signature = token.slice(token.lastIndexOf('.') + 1)
  return Buffer.from(signature, 'base64url').toString('base64url') === signature
}

const issuer = 'domains-and-files'
const verifyOptions = {
  algorithms: ['HS256' as const],
  allowedIss: issuer,
  requiredClaims: ['iss', 'aud', 'exp'],
  checkTyp: 'JWT',
  cache: false,
  ignoreExpiration: true,
  ignoreNotBefore: true,
}
const maxWorkloadS = 900
const maxTokenLength = 8192 // With limits to many domains.
const maxCached = 4000
