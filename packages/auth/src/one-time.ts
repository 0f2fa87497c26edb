import { name, type Sql, sql } from '@domains-and-files/persistence'

export const oneTimeTable = name('one_time')

/** Retention after expiry: on another replica's clock the id may not have expired yet. */
const clockMarginMs = 3_600_000

/**
 * Ids that are valid once, across replicas and restarts: redeemable codes, exchanged workload tokens, and ended sessions.
 */
export class OneTime {
  readonly #database: Sql
  readonly #now: () => number

  /** `now` is in milliseconds since 1970. */
  constructor(database: Sql, now: () => number) {
    this.#database = database
    this.#now = now
  }

  /** Stores a value under an unused id (of a secret: its digest). @returns false if the id is taken. */
  async put(id: string, value: string, expiresAt: number): Promise<boolean> {
    const added = await this.#database.transaction(async (transaction) => {
      await transaction.run(
        sql`delete from ${oneTimeTable} where expires_at <= ${this.#now() - clockMarginMs}`,
      )
      return transaction.run(
        sql`insert into ${oneTimeTable} (id, value, expires_at) values (${id}, ${value}, ${expiresAt})
          on conflict (id) do nothing`,
      )
    })
    return added === 1
  }

  /** Whether an id is stored. */
  async has(id: string): Promise<boolean> {
    return Boolean(await this.#database.get(sql`select 1 from ${oneTimeTable} where id = ${id}`))
  }

  /** Removes and returns the value of an id. @returns undefined if there is none, or it has expired. */
  async take(id: string): Promise<string | undefined> {
    const row = await this.#database.get<{ value: string; expires_at: number }>(
      sql`delete from ${oneTimeTable} where id = ${id} returning value, expires_at`,
    )
    return row && row.expires_at > this.#now() ? row.value : undefined
  }
}
