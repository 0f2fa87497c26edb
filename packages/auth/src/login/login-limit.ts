import { createHash, randomUUID } from 'node:crypto'
import { clientNetwork } from '@domains-and-files/http'
import {
  join,
  list,
  lockOf,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import { tooManyLogins } from '../errors.ts'

/** Maximum failed logins in `windowMs`. */
export interface LoginLimits {
  windowMs: number
  /** For one username from one client network. */
  perPair: number
  /** For one client network, over all usernames. */
  perNetwork: number
  /** For one username, over all networks. */
  perUsername: number
}

export const defaultLoginLimits: LoginLimits = {
  windowMs: 15 * 60_000,
  perPair: 10,
  perNetwork: 30,
  perUsername: 200,
}

export interface Attempt {
  username: string
  /** Whether the username exists. */
  isUser: boolean
  /** The client's IP address. */
  address: string
}

/** Which limit an attempt reached. */
export type Lockout = 'username and network' | 'network' | 'username'

type OnLockout = (attempt: Attempt, lockout: Lockout) => void

interface Scope {
  lockout: Lockout
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
  readonly #onLockout: OnLockout

  constructor(database: Sql, limits: LoginLimits, onLockout: OnLockout) {
    this.#database = database
    this.#limits = limits
    this.#onLockout = onLockout
  }

  /** @throws {HttpError} 429 until this attempt is allowed. */
  check(attempt: Attempt): Promise<void> {
    return this.#check(this.#database, this.#scopesOf(attempt))
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
    // Stored before verification, so that the attempt of a killed replica still counts as failed.
    await this.#exclusively(async (transaction) => {
      await this.#check(transaction, scopes)
      await transaction.run(sql`delete from ${table} where at <= ${this.#windowStart}`)
      const rows = scopes.map(({ key }) => sql`(${id}, ${key}, 1, ${now})`)
      await transaction.run(
        sql`insert into ${table} (attempt, key, is_running, at) values ${join(rows)}`,
      )
    })
    const isRight = await verify().catch(async (error) => {
      await this.#database.run(sql`delete from ${table} where attempt = ${id}`)
      throw error
    })
    if (!isRight)
      for (const lockout of await this.#fail(id, scopes)) this.#onLockout(attempt, lockout)
    else
      await this.#database.run(
        sql`delete from ${table} where attempt = ${id} or (key = ${scopes[0]?.key} and is_running = 0)`,
      )
    return isRight
  }

  /** @returns the limits that this failure reached. */
  #fail(id: string, scopes: Scope[]): Promise<Lockout[]> {
    return this.#exclusively(async (transaction) => {
      await transaction.run(
        sql`update ${table} set is_running = 0, at = ${now} where attempt = ${id}`,
      )
      const keys = list(scopes.map(({ key }) => key))
      const rows = await transaction.all<{ key: string; failures: number }>(
        sql`select key, count(*) as failures from ${table}
          where key in (${keys}) and is_running = 0 and at > ${this.#windowStart} group by key`,
      )
      return scopes
        .filter(({ key, max }) => rows.some((row) => row.key === key && row.failures === max))
        .map(({ lockout }) => lockout)
    })
  }

  // Sliding window: the `max`-th latest attempt blocks until it leaves the window. If it is still running: retry in 1 s.
  async #check(reader: SqlTransaction, scopes: Scope[]): Promise<void> {
    const blocking = scopes.map(
      ({ key, max }) => sql`select * from (
        select is_running, at - ${now} as age from ${table}
        where key = ${key} and at > ${this.#windowStart}
        order by is_running desc, at desc limit 1 offset ${max - 1}) as blocking`,
    )
    const rows = await reader.all<{ is_running: number; age: number }>(
      join(blocking, ' union all '),
    )
    const waits = rows.map(({ is_running, age }) =>
      is_running && age > -longestAttemptMs ? 1 : Math.ceil((age + this.#limits.windowMs) / 1000),
    )
    const secondsToWait = Math.max(0, ...waits)
    if (secondsToWait > 0) throw tooManyLogins(secondsToWait)
  }

  // Checking and counting must be atomic across replicas. One lock suffices: logins are rare, as each costs a password hash.
  #exclusively<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#database.transaction(async (transaction) => {
      await transaction.get(lockOf('login_attempts'))
      return work(transaction)
    })
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
    const scopes: [Lockout, number, string][] = [
      ['username and network', perPair, `${kind} pair ${network} ${username}`],
      ['network', perNetwork, `network ${network}`],
      ['username', perUsername, `${kind} username ${username}`],
    ]
    return scopes.map(([lockout, max, key]) => ({ lockout, max, key: digestOf(key) }))
  }
}

const digestOf = (key: string) => createHash('sha256').update(key).digest('base64url').slice(0, 22)
