import { name, now, type Sql, sql } from '@domains-and-files/persistence'

const updates = name('host_updates')
/** Updates of a host by a user in a window, which begins with the first of them. */
const maxUpdates = 30
const windowMs = 300_000
/** Maximum hosts that are counted: beyond it the first to expire is forgotten. */
const maxCounted = 10_000
/** Longer texts are no host names: RFC 1035, 2.3.4. */
const maxLength = 255

/** Counts how often users update a host; shared by replicas. */
export class HostUpdates {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  /** Counts an update of these hosts. @returns whether each is within its limit. */
  async add(username: string, hosts: string[]): Promise<boolean> {
    // Setting the clock back must not extend a window.
    await this.#sql.run(sql`delete from ${updates} where ends_at <= ${now} or ends_at > ${now} + ${windowMs}
      or ends_at < (select ends_at from ${updates} order by ends_at desc limit 1 offset ${maxCounted})`)
    for (const host of hosts) {
      const row = await this.#sql.get<{ count: number }>(sql`
        insert into ${updates} as known (username, host, count, ends_at)
        values (${username}, ${host.slice(0, maxLength)}, 1, ${now} + ${windowMs})
        on conflict (username, host) do update set count = known.count + 1 returning count`)
      if (row && row.count > maxUpdates) return false
    }
    return true
  }
}
