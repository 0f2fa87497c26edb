import { name, type Sql, sql } from '@domains-and-files/persistence'

export const oneTimeTable = name('one_time')

/**
 * Retention after expiry: on another replica's clock the id may not have expired yet, and a request that was admitted
 * before its session ended may still be sending its body.
 */
const keptExpiredMs = 86_400_000

/**
 * Ids that are valid once, across replicas and restarts: redeemable codes, exchanged workload tokens, and ended sessions.
 */
export class OneTime {
  readonly #database: Sql
  readonly #now: () => number
  /** Expiry times of the stored ids, on SQLite, which one process owns: each request looks its session up here. */
  readonly known: Map<string, number> | undefined

  /** `now` is in milliseconds since 1970. */
  constructor(database: Sql, now: () => number, known?: Map<string, number>) {
    this.#database = database
    this.#now = now
    this.known = known
  }

  static async open(database: Sql, now: () => number): Promise<OneTime> {
    if (database.dialect === 'postgres') return new OneTime(database, now)
    const rows = await database.all<{ id: string; expires_at: number }>(sql`select id, expires_at from ${oneTimeTable}`)
    return new OneTime(database, now, new Map(rows.map((row) => [row.id, row.expires_at])))
  }

  /** Stores a value under an unused id (of a secret: its digest). @returns false if the id is taken. */
  async put(id: string, value: string, expiresAt: number): Promise<boolean> {
    const forgotten = this.#now() - keptExpiredMs
    const added = await this.#database.transaction(async (transaction) => {
      await transaction.run(sql`delete from ${oneTimeTable} where expires_at <= ${forgotten}`)
      return transaction.run(
        sql`insert into ${oneTimeTable} (id, value, expires_at) values (${id}, ${value}, ${expiresAt})
          on conflict (id) do nothing`,
      )
    })
    for (const [each, at] of this.known ?? []) if (at <= forgotten) this.known?.delete(each)
    if (added === 1) this.known?.set(id, expiresAt)
    return added === 1
  }

  /** Removes and returns the value of an id. @returns undefined if there is none, or it has expired. */
  async take(id: string): Promise<string | undefined> {
    this.known?.delete(id)
    const row = await this.#database.transaction((transaction) =>
      transaction.get<{ value: string; expires_at: number }>(
        sql`delete from ${oneTimeTable} where id = ${id} returning value, expires_at`,
      ),
    )
    return row && row.expires_at > this.#now() ? row.value : undefined
  }
}
