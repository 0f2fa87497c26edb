import { list, name, type Sql, sql } from '@domains-and-files/persistence'

const table = name('last_logins')

/** When users last logged in to this service. */
export class LastLogins {
  readonly #database: Sql
  readonly #now: () => number
  readonly #report: (error: unknown) => void

  /** `report` receives failed writes: a full disk keeps nobody from logging in. */
  constructor(database: Sql, now: () => number, report: (error: unknown) => void) {
    this.#database = database
    this.#now = now
    this.#report = report
  }

  record(username: string): void {
    this.#database
      .run(
        sql`insert into ${table} (username, at) values (${username}, ${this.#now()})
          on conflict (username) do update set at = excluded.at`,
      )
      .catch(this.#report)
  }

  /** By username, those of a service's users who have logged in. */
  async find(usernames: string[]): Promise<Map<string, Date>> {
    const rows = await this.#database.all<{ username: string; at: number }>(
      sql`select username, at from ${table} where username in (${list(usernames)})`,
    )
    return new Map(rows.map(({ username, at }) => [username, new Date(at)]))
  }
}
