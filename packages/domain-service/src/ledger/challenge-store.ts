import { join, name, type Sql, type Statement, sql } from '@domains-and-files/persistence'

/** The TXT record of an ACME challenge. */
export interface ChallengeKey {
  domain: string
  name: string
  value: string
}

/** An ACME challenge that a client asked for. */
export interface StoredChallenge extends ChallengeKey {
  /** The protocol and the caller that asked. */
  owner: string
  /** The request that added the record, or may have. */
  requestId: string
  /** Milliseconds since 1970. */
  createdAt: number
  /** 1: that request has added the record; 0: it may be another author's. */
  isAdded: number
}

const challenges = name('acme_challenges')

/** ACME challenges. Those that their clients forget are removed by their age. */
export class ChallengeStore {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  /** Adds a challenge, or renews the age of the confirmed one with its key. @returns whether it is new. */
  async add(challenge: StoredChallenge): Promise<boolean> {
    const inserted = await this.#insert(challenge, sql`nothing`)
    if (inserted > 0) return true
    await this.#sql.run(sql`update ${challenges} set created_at = ${challenge.createdAt}
      where ${isOneOf([challenge])} and added = 1`)
    return false
  }

  /** Its request has added its record. */
  async confirm(challenge: StoredChallenge): Promise<void> {
    await this.#insert(
      { ...challenge, isAdded: 1 },
      sql`update set owner = excluded.owner, request_id = excluded.request_id,
        created_at = excluded.created_at, added = 1`,
    )
  }

  async remove(removed: ChallengeKey[], { unlessConfirmed = false } = {}): Promise<void> {
    const which = unlessConfirmed ? sql`and added = 0` : sql``
    if (removed.length > 0) await this.#sql.run(sql`delete from ${challenges} where ${isOneOf(removed)} ${which}`)
  }

  /** The challenges at a name, oldest first. */
  list({ domain, name }: Omit<ChallengeKey, 'value'>): Promise<StoredChallenge[]> {
    return this.#select(sql`domain = ${domain} and name = ${name} order by created_at, id`)
  }

  /** Challenges set before a time (milliseconds since 1970), at most 1,000. */
  before(time: number): Promise<StoredChallenge[]> {
    return this.#select(sql`created_at < ${time} limit 1000`)
  }

  #select(condition: Statement): Promise<StoredChallenge[]> {
    return this.#sql.all(sql`select domain, name, value, owner, request_id as "requestId",
      created_at as "createdAt", added as "isAdded" from ${challenges} where ${condition}`)
  }

  #insert(challenge: StoredChallenge, otherwise: Statement): Promise<number> {
    const { domain, name, value, owner, requestId, createdAt, isAdded } = challenge
    return this.#sql.run(sql`
      insert into ${challenges} (domain, name, value, owner, request_id, created_at, added)
      values (${join([domain, name, value, owner, requestId, createdAt, isAdded])})
      on conflict (domain, name, value) do ${otherwise}`)
  }
}

const isOneOf = (keys: ChallengeKey[]) => {
  const rows = keys.map(({ domain, name, value }) => sql`(${domain}, ${name}, ${value})`)
  return sql`(domain, name, value) in (values ${join(rows)})`
}
