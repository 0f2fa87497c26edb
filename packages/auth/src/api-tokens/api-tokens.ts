import { randomUUID, timingSafeEqual } from 'node:crypto'
import { name, type Sql, type Statement, sql } from '@domains-and-files/persistence'
import { z } from 'zod'
import * as errors from '../errors.ts'
import { isInNetworks, Network, RecordLimit, wantedLimits } from '../limits.ts'
import {
  type Caller,
  callerOfUser,
  findExcess,
  hasExpired,
  hasRole,
  intersectRights,
  limitsOf,
  Role,
  refuse,
  rightsOfGrant,
} from '../rights.ts'
import type { User } from '../users/user.ts'
import { createToken, digestOf, prefixOf } from './token-format.ts'

const maxLifetimeS = 10 * 366 * 86_400

export const tokenLimits = {
  role: Role.optional().describe('default: viewer; with `records`: none, so these only'),
  ...wantedLimits,
  records: z.array(RecordLimit).min(1).max(100).optional(),
  networks: z.array(Network).min(1).max(100).optional(),
  /** Whether setHosts of the registrar's protocol may replace a zone that this token has not read before. */
  replace: z.boolean().optional(),
}

export const NewToken = z
  .strictObject({
    name: z
      .string()
      .trim()
      .refine((text) => /^[^\p{Cc}\p{Cs}]{1,100}$/u.test(text), 'must have 1 to 100 characters, no control characters')
      .describe('for the list, the history and the logs'),
    expires_in: z
      .optional(z.int().min(0).max(maxLifetimeS))
      .describe('seconds; default 90 days; 0: never, for admins only'),
    ...tokenLimits,
  })
  .meta({
    id: 'NewToken',
    examples: [{ name: 'certificates of example.com', records: [{ name: '_acme-challenge', types: ['TXT'] }] }],
  })
export type NewToken = z.infer<typeof NewToken>

/** An API token without its secret. Instants are RFC 3339. */
export interface ApiToken extends Omit<NewToken, 'expires_in'> {
  id: string
  hint: string
  owner: string
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}

interface Row {
  owner_id: string | null
  /** JSON of an `ApiToken` with its digest. */
  definition: string
  expires_at: number | null
  last_used_at: number | null
}

export interface ApiTokensOptions {
  database: Sql
  find: (username: string) => Promise<User | undefined>
  /** `ds_` or `ss_`. */
  prefix: string
  /** Milliseconds since 1970. */
  now: () => number
  /** Receives failed writes of last-used times, which block no caller: logins work on a full disk. */
  report: (error: unknown) => void
}

const table = name('api_tokens')
const columns = sql`owner_id, definition, expires_at, last_used_at`

const maxTokensPerOwner = 200
const touchIntervalMs = 60_000
const defaultLifetimeS = 90 * 86_400
const keptExpiredMs = 30 * 86_400_000

/** The API tokens of a service. Each look-up reads the database, so a revocation takes effect on all replicas at once. */
export class ApiTokens {
  readonly #options: ApiTokensOptions
  /** Last recorded use by token id, ahead of the database. */
  readonly #touched = new Map<string, number>()

  constructor(options: ApiTokensOptions) {
    this.#options = options
  }

  /**
   * The caller that a token identifies, even if it has expired, with at most the present rights of its owner. For an
   * `address` outside its networks a token is like an unknown one.
   * @throws {HttpError} 401
   */
  async identify(text: string, address: string): Promise<Caller> {
    if (prefixOf(text) !== this.#options.prefix) throw errors.tokenInvalid()
    const digest = digestOf(text)
    const stored = await this.#find(sql`lookup = ${lookupOf(digest)}`)
    if (!stored || !isEqual(stored.digest, digest)) throw errors.tokenInvalid()
    const { networks } = stored.token
    const caller = await this.#callerOf(stored)
    if (!caller || (networks && !isInNetworks(address, networks))) throw errors.tokenInvalid()
    if (!hasExpired(caller, this.#options.now())) this.#touch(stored.token)
    return caller
  }

  /** The caller that a token identifies: see `identify`. @throws {HttpError} 401, also if it has expired */
  async verify(text: string, address: string): Promise<Caller> {
    const caller = await this.identify(text, address)
    if (hasExpired(caller, this.#options.now())) throw errors.tokenExpired()
    return caller
  }

  /** The caller of the token with this id, with its rights now. Undefined: it is revoked or expired, or its owner removed. */
  async findCaller(id: string): Promise<Caller | undefined> {
    const stored = await this.#find(sql`id = ${id}`)
    const caller = stored && (await this.#callerOf(stored))
    return caller && !hasExpired(caller, this.#options.now()) ? caller : undefined
  }

  /**
   * Stores a new token. It replaces one of the same name that expired, or that belonged to a removed user of the same name.
   * @returns the stored record, and the token itself, which is not stored.
   * @throws {HttpError} 403 if its rights exceed the owner's; 409 if the name is taken, or the owner has too many tokens.
   */
  async create(owner: Caller, request: NewToken): Promise<{ text: string; token: ApiToken }> {
    const { expires_in: lifetime = defaultLifetimeS, ...limits } = request
    // Without a limit of its own, a token has that of its owner.
    refuse(findExcess(owner, { ...limitsOf(owner), ...limits }))
    if (lifetime === 0 && !hasRole(owner, 'admin')) refuse('Only an admin can create a token that never expires')
    const text = createToken(this.#options.prefix)
    const at = this.#options.now()
    const token = {
      id: randomUUID(),
      ...limits,
      hint: text.slice(-4),
      owner: owner.username,
      created_at: new Date(at).toISOString(),
      expires_at: instantOf(lifetime === 0 ? null : at + lifetime * 1000),
      last_used_at: null,
    }
    await this.#insert(token, digestOf(text), at)
    return { text, token }
  }

  /** Tokens of one owner, or all; oldest first. */
  async list(owner?: string): Promise<ApiToken[]> {
    const ofOwner = owner === undefined ? sql`` : sql`where ${ownedBy(owner, await this.#idOf(owner))}`
    const rows = await this.#options.database.all<Row>(
      sql`select ${columns} from ${table} ${ofOwner} order by created_at, id`,
    )
    return rows.map((row) => storedOf(row).token)
  }

  /** Revokes a token at once, if `isAllowed` for its owner. @throws {HttpError} 404 */
  async remove(id: string, isAllowed: (owner: string) => boolean = () => true) {
    const stored = await this.#find(sql`id = ${id}`)
    if (!stored || !isAllowed(stored.token.owner)) throw errors.tokenNotFound(id)
    await this.#options.database.run(sql`delete from ${table} where id = ${id}`)
  }

  async #find(condition: Statement) {
    const row = await this.#options.database.get<Row>(sql`select ${columns} from ${table} where ${condition}`)
    return row && storedOf(row)
  }

  async #insert(token: ApiToken, digest: string, at: number) {
    const { owner } = token
    const expiresAt = token.expires_at && Date.parse(token.expires_at)
    const ownerId = await this.#idOf(owner)
    const isDead = sql`expires_at <= ${at} or owner_id is distinct from ${ownerId}`
    const added = await this.#options.database.transaction(async (transaction) => {
      await transaction.run(
        sql`delete from ${table} where expires_at < ${at - keptExpiredMs}
          or (owner = ${owner} and name = ${token.name} and (${isDead}))`,
      )
      const found = await transaction.get<{ count: number }>(
        sql`select count(*) as count from ${table} where ${ownedBy(owner, ownerId)}`,
      )
      if (found && found.count >= maxTokensPerOwner) throw errors.tooManyTokens(maxTokensPerOwner)
      return transaction.run(
        sql`insert into ${table} (id, lookup, owner, owner_id, name, definition, created_at, expires_at)
          values (${token.id}, ${lookupOf(digest)}, ${owner}, ${ownerId}, ${token.name},
            ${JSON.stringify({ ...token, digest })}, ${at}, ${expiresAt})
          on conflict (owner, name) do nothing`,
      )
    })
    if (added === 0) throw errors.tokenExists(token.name)
  }

  async #idOf(owner: string): Promise<string | null> {
    return (await this.#options.find(owner))?.id ?? null
  }

  /** Undefined: its owner was removed. */
  async #callerOf({ token, ownerId }: Stored): Promise<Caller | undefined> {
    const owner = await this.#options.find(token.owner)
    if (!owner || (owner.id ?? null) !== ownerId) return undefined
    const { id, name: tokenName, replace, expires_at } = token
    return {
      id: `token:${id}`,
      username: owner.username,
      ...intersectRights(owner, rightsOfGrant(token)),
      ...(expires_at !== null && { expiresAt: new Date(expires_at) }),
      token: { id, name: tokenName, owner: callerOfUser(owner).id, ...(replace && { mayReplace: true }) },
    }
  }

  #touch({ id, last_used_at }: ApiToken) {
    const { database, now: clock, report } = this.#options
    const at = clock()
    const last = Math.max(this.#touched.get(id) ?? 0, Date.parse(last_used_at ?? '') || 0)
    if (at - last < touchIntervalMs) return
    this.#touched.set(id, at)
    const isOlder = sql`last_used_at is null or last_used_at < ${at}`
    database.run(sql`update ${table} set last_used_at = ${at} where id = ${id} and (${isOlder})`).catch(report)
  }
}

function storedOf({ definition, owner_id: ownerId, ...row }: Row) {
  const { digest, ...token }: ApiToken & { digest: string } = JSON.parse(definition)
  const expires_at = instantOf(row.expires_at)
  return {
    token: { ...token, expires_at, last_used_at: instantOf(row.last_used_at) },
    digest,
    ownerId,
  }
}

type Stored = ReturnType<typeof storedOf>

const instantOf = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

/** Without tokens of a removed user of the same name. */
const ownedBy = (owner: string, id: string | null) => sql`owner = ${owner} and owner_id is not distinct from ${id}`

const lookupOf = (digest: string) => digest.slice(0, 32)

const isEqual = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
