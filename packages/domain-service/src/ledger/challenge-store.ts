import { join, name, type Sql, sql } from '@domains-and-files/persistence'

/** An ACME challenge that was set here. */
export interface StoredChallenge {
  domain: string
  name: string
  value: string
}

const challenges = name('acme_challenges')

/** Which ACME challenges were set, and when: what their clients forget is removed. */
export class ChallengeStore {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  /** Adds a challenge, or renews its age. */
  async add(challenge: StoredChallenge & { createdAt: number }): Promise<void> {
    const { domain, name, value, createdAt } = challenge
    await this.#sql.run(sql`insert into ${challenges} (domain, name, value, created_at)
      values (${domain}, ${name}, ${value}, ${createdAt})
      on conflict (domain, name, value) do update set created_at = excluded.created_at`)
  }

  async remove(removed: StoredChallenge[]): Promise<void> {
    if (removed.length === 0) return
    const keys = removed.map(({ domain, name, value }) => sql`(${domain}, ${name}, ${value})`)
    await this.#sql.run(
      sql`delete from ${challenges} where (domain, name, value) in (values ${join(keys)})`,
    )
  }

  /** The challenges at a name, oldest first. */
  list({ domain, name }: { domain: string; name: string }): Promise<StoredChallenge[]> {
    return this.#sql.all(sql`select domain, name, value from ${challenges}
      where domain = ${domain} and name = ${name} order by created_at, id`)
  }

  /** Challenges set before a time (milliseconds since 1970), at most 1,000. */
  before(time: number): Promise<StoredChallenge[]> {
    return this.#sql.all(
      sql`select domain, name, value from ${challenges} where created_at < ${time} limit 1000`,
    )
  }
}
