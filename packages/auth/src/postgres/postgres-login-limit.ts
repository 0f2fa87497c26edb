import { randomUUID } from 'node:crypto'
import type { Postgres, Transaction } from '@domains-and-files/persistence'
import {
  type Attempt,
  keysOf,
  type Lockout,
  type LoginLimit,
  type LoginLimits,
  type OnLockout,
} from '../login/login-limit.ts'

interface Scope {
  lockout: Lockout
  key: string
  max: number
}

type Reader = Pick<Transaction, 'query'>

/** An attempt that its replica has not ended within this time counts as failed: the replica is gone. */
const longestAttempt = "interval '1 minute'"

/** Login limits over all replicas, on the clock of PostgreSQL. */
export class PostgresLoginLimit implements LoginLimit {
  readonly #database: Postgres
  readonly #table: string
  readonly #limits: LoginLimits
  readonly #onLockout: OnLockout

  constructor(database: Postgres, limits: LoginLimits, onLockout: OnLockout) {
    this.#database = database
    this.#table = `${database.schema}.login_attempts`
    this.#limits = limits
    this.#onLockout = onLockout
  }

  secondsToWait(attempt: Attempt) {
    return this.#secondsToWait(this.#database, this.#scopesOf(attempt))
  }

  async run(attempt: Attempt, verify: () => Promise<boolean>) {
    const id = randomUUID()
    const scopes = this.#scopesOf(attempt)
    const secondsToWait = await this.#begin(id, scopes)
    if (secondsToWait > 0) return { secondsToWait, isRight: false }
    const isRight = await verify().catch(async (error) => {
      await this.#removeAttempt(id)
      throw error
    })
    if (isRight) await this.#succeed(id, scopes)
    else for (const lockout of await this.#fail(id, scopes)) this.#onLockout(attempt, lockout)
    return { secondsToWait, isRight }
  }

  // Counted as failed from the beginning, so that an attempt counts whose replica is killed.
  async #begin(id: string, scopes: Scope[]): Promise<number> {
    return this.#exclusively(async (transaction) => {
      const secondsToWait = await this.#secondsToWait(transaction, scopes)
      if (secondsToWait > 0) return secondsToWait
      await transaction.query(
        `delete from ${this.#table} where at < clock_timestamp() - make_interval(secs => $1)`,
        [this.#windowSeconds],
      )
      await transaction.query(
        `insert into ${this.#table} (attempt, key, is_running, at)
        select $1, key, true, clock_timestamp() from unnest($2::text[]) key`,
        [id, scopes.map(({ key }) => key)],
      )
      return 0
    })
  }

  async #succeed(id: string, scopes: Scope[]) {
    const pair = scopes.find(({ lockout }) => lockout === 'username and network')
    await this.#exclusively((transaction) =>
      transaction.query(
        `delete from ${this.#table} where attempt = $1 or (key = $2 and not is_running)`,
        [id, pair?.key],
      ),
    )
  }

  /** @returns the limits that this failure reached. */
  async #fail(id: string, scopes: Scope[]): Promise<Lockout[]> {
    return this.#exclusively(async (transaction) => {
      await transaction.query(
        `update ${this.#table} set is_running = false, at = clock_timestamp() where attempt = $1`,
        [id],
      )
      const rows = await transaction.query<{ key: string; count: number }>(
        `select key, count(*) from ${this.#table}
        where key = any($1) and not is_running
          and at > clock_timestamp() - make_interval(secs => $2)
        group by key`,
        [scopes.map(({ key }) => key), this.#windowSeconds],
      )
      const counts = new Map(rows.map(({ key, count }) => [key, count]))
      return scopes.flatMap(({ lockout, key, max }) => (counts.get(key) === max ? [lockout] : []))
    })
  }

  async #removeAttempt(id: string) {
    await this.#database.query(`delete from ${this.#table} where attempt = $1`, [id])
  }

  // The attempt that is `max` back in the window is in the way until it leaves the window; a running one will soon end.
  async #secondsToWait(reader: Reader, scopes: Scope[]): Promise<number> {
    const [row] = await reader.query<{ seconds: number }>(
      `select coalesce(max(ceil(case
          when is_running and at > clock_timestamp() - ${longestAttempt} then 1
          else extract(epoch from at - clock_timestamp()) + $3
        end)), 0)::int as seconds
      from unnest($1::text[], $2::int[]) as limits (key, max)
      cross join lateral (
        select is_running, at from ${this.#table} attempts
        where attempts.key = limits.key
          and at > clock_timestamp() - make_interval(secs => $3::double precision)
        order by is_running desc, at desc offset limits.max - 1 limit 1
      ) blocking`,
      [scopes.map(({ key }) => key), scopes.map(({ max }) => max), this.#windowSeconds],
    )
    return row?.seconds ?? 0
  }

  // Checking and counting must be one step for all replicas. Logins are few: each costs a password hash.
  #exclusively<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#database.transaction(async (transaction) => {
      await transaction.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `logins ${this.#table}`,
      ])
      return run(transaction)
    })
  }

  get #windowSeconds() {
    return this.#limits.windowMs / 1000
  }

  #scopesOf(attempt: Attempt): Scope[] {
    const keys = keysOf(attempt)
    const kind = attempt.isUser ? 'known' : 'unknown'
    const { perPair, perNetwork, perUsername } = this.#limits
    return [
      {
        lockout: 'username and network',
        key: `${kind} pair ${keys['username and network']}`,
        max: perPair,
      },
      { lockout: 'network', key: `network ${keys.network}`, max: perNetwork },
      { lockout: 'username', key: `${kind} username ${keys.username}`, max: perUsername },
    ]
  }
}
