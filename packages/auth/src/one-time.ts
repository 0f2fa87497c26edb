import { name, type Sql, sql } from '@domains-and-files/persistence'
import { digestOf } from './api-tokens/token-format.ts'

export const oneTimeTable = name('one_time')

/** How long what has expired is kept: by the clock of another replica it may not have expired yet. */
const clockMarginMs = 3_600_000

/**
 * What counts once, on whichever replica and also after a restart: codes that are taken, tokens that are used, and sessions
 * that have ended.
 */
export class OneTime {
  readonly #database: Sql
  readonly #now: () => number

  /** `now` is in milliseconds since 1970. */
  constructor(database: Sql, now: () => number) {
    this.#database = database
    this.#now = now
  }

  /** Stores a value under a key, of which only the digest is stored. @returns false if there is one under it. */
  async put(key: string, value: string, expiresAt: number): Promise<boolean> {
    return await this.#database.transaction(async (transaction) => {
      await transaction.run(
        sql`delete from ${oneTimeTable} where expires_at <= ${this.#now() - clockMarginMs}`,
      )
      const added = await transaction.run(
        sql`insert into ${oneTimeTable} (id, value, expires_at) values (${digestOf(key)}, ${value}, ${expiresAt})
          on conflict (id) do nothing`,
      )
      return added === 1
    })
  }

  /** Whether there is a value under a key. */
  async has(key: string): Promise<boolean> {
    const found = await this.#database.get(
      sql`select 1 as one from ${oneTimeTable} where id = ${digestOf(key)}`,
    )
    return found !== undefined
  }

  /** Removes the value under a key. @returns undefined if there is none, or no longer. */
  async take(key: string): Promise<string | undefined> {
    const row = await this.#database.transaction((transaction) =>
      transaction.get<{ value: string; expires_at: number }>(
        sql`delete from ${oneTimeTable} where id = ${digestOf(key)} returning value, expires_at`,
      ),
    )
    return row && row.expires_at > this.#now() ? row.value : undefined
  }
}
