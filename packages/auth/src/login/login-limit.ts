import { randomUUID } from 'node:crypto'
import { clientNetwork, type Logger } from '@domains-and-files/http'
import { join, list, lockOf, name, now, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { digestOf } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'

/** Maximum failed logins in `windowMs`. */
export const defaultLoginLimits = {
  windowMs: 15 * 60_000,
  /** For one username from one client network. */
  perPair: 10,
  /** For one client network, over all usernames. */
  perNetwork: 30,
  /** For one username, over all networks. */
  perUsername: 200,
}
export type LoginLimits = typeof defaultLoginLimits

export interface Attempt {
  username: string
  isUser: boolean
  address: string
}

interface Scope {
  lockout: 'username and network' | 'network' | 'username'
  key: string
  max: number
}

const table = name('login_attempts')

/** An attempt still running after this time counts as failed: its replica has died. */
const longestAttemptMs = 60_000

/**
 * Limits failed logins so that guessing is slow, while nobody can lock a user out from another network with a few
 * attempts. All replicas count together, on the clock of the database.
 */
export class LoginLimit {
  readonly #database: Sql
  readonly #limits: LoginLimits
  readonly #log: Pick<Logger, 'warn'>

  constructor(database: Sql, limits: LoginLimits, log: Pick<Logger, 'warn'>) {
    this.#database = database
    this.#limits = limits
    this.#log = log
  }

  /** @throws {HttpError} 429 until this attempt is allowed. */
  async check(attempt: Attempt): Promise<void> {
    await this.#check(this.#database, this.#scopesOf(attempt))
  }

  /**
   * Makes an attempt if it is allowed now, and counts a failure. A success resets the count of its username and network.
   * An attempt that throws does not count. A running attempt counts as failed, so that concurrent ones cannot pass the
   * limit together.
   * @returns what `verify` does. @throws {HttpError} 429 for an attempt that is not allowed, and so not made.
   */
  async run(attempt: Attempt, verify: () => Promise<boolean>): Promise<boolean> {
    const id = randomUUID()
    const scopes = this.#scopesOf(attempt)
    const ofThis = sql`attempt = ${id}`
    // Checked and stored as one, before the verification: the attempt of a killed replica counts as failed. One lock
    // suffices: logins are rare, as each costs a password hash.
    const lockouts = await this.#database.transaction(async (transaction) => {
      await transaction.get(lockOf('login_attempts'))
      const last = await this.#check(transaction, scopes)
      await transaction.run(sql`delete from ${table} where at <= ${this.#windowStart}`)
      const rows = scopes.map(({ key }) => sql`(${id}, ${key}, 1, ${now})`)
      await transaction.run(sql`insert into ${table} (attempt, key, is_running, at) values ${join(rows)}`)
      return last
    })
    const isRight = await verify().catch(async (error) => {
      await this.#database.run(sql`delete from ${table} where ${ofThis}`)
      throw error
    })
    const isOfPair = sql`key = ${scopes[0]?.key} and is_running = 0`
    await this.#database.run(
      isRight
        ? sql`delete from ${table} where ${ofThis} or (${isOfPair})`
        : sql`update ${table} set is_running = 0 where ${ofThis}`,
    )
    // An unknown username may be a password typed into the wrong field.
    const { username, isUser, address: client } = attempt
    if (!isRight)
      for (const limit of lockouts) this.#log.warn({ client, limit, ...(isUser && { username }) }, 'login locked')
    return isRight
  }

  /**
   * Sliding window: after `max` attempts the oldest blocks until it leaves the window, or for a second while one is running.
   * @returns the limits that one more failure reaches.
   */
  async #check(reader: SqlTransaction, scopes: Scope[]): Promise<Scope['lockout'][]> {
    const isRunning = sql`is_running = 1 and at > ${now} - ${longestAttemptMs}`
    const rows = await reader.all<{ key: string; count: number; running: number; age: number }>(
      sql`select key, count(*) as count, min(at) - ${now} as age,
          count(case when ${isRunning} then 1 end) as running
        from ${table} where key in (${list(scopes.map(({ key }) => key))}) and at > ${this.#windowStart}
        group by key`,
    )
    const counted = scopes.map((scope) => ({ ...scope, ...rows.find(({ key }) => key === scope.key) }))
    const waits = counted.map(({ max, count = 0, running = 0, age = 0 }) => {
      if (count < max) return 0
      return running > 0 ? 1 : Math.ceil((age + this.#limits.windowMs) / 1000)
    })
    const secondsToWait = Math.max(...waits)
    if (secondsToWait > 0) throw errors.tooManyLogins(secondsToWait)
    return counted.filter(({ max, count = 0 }) => count === max - 1).map(({ lockout }) => lockout)
  }

  get #windowStart() {
    return sql`${now} - ${this.#limits.windowMs}`
  }

  // The pair first. Unknown usernames have keys of their own: a user created later does not inherit their failures. Only
  // digests are stored, since text typed as a username may be a password.
  #scopesOf({ username, isUser, address }: Attempt): Scope[] {
    const network = clientNetwork(address)
    const kind = isUser ? 'known' : 'unknown'
    const { perPair, perNetwork, perUsername } = this.#limits
    const scopes: [Scope['lockout'], number, string][] = [
      ['username and network', perPair, `${kind} pair ${network} ${username}`],
      ['network', perNetwork, `network ${network}`],
      ['username', perUsername, `${kind} username ${username}`],
    ]
    return scopes.map(([lockout, max, key]) => ({ lockout, max, key: digestOf(key) }))
  }
}
