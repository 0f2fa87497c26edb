import type { Database } from 'better-sqlite3'
import { toStorageError } from './storage-errors.ts'

/** An ACME challenge that was set here. */
export interface StoredChallenge {
  domain: string
  name: string
  value: string
}

/** Which ACME challenges were set, and when: what their clients forget is removed. */
export class ChallengeStore {
  readonly #insert
  readonly #delete
  readonly #ofName
  readonly #before

  constructor(database: Database) {
    this.#insert = database.prepare<[string, string, string, number]>(
      `insert into acme_challenges (domain, name, value, created_at) values (?, ?, ?, ?)
       on conflict do update set created_at = excluded.created_at`,
    )
    this.#delete = database.prepare<[string, string, string]>(
      'delete from acme_challenges where domain = ? and name = ? and value = ?',
    )
    this.#ofName = database.prepare<[string, string], StoredChallenge>(
      'select domain, name, value from acme_challenges where domain = ? and name = ? order by created_at, rowid',
    )
    this.#before = database.prepare<[number], StoredChallenge>(
      'select domain, name, value from acme_challenges where created_at < ? limit 1000',
    )
  }

  /** Adds a challenge, or renews its age. @throws {HttpError} 503 or 507 where it cannot be stored. */
  add({ domain, name, value, createdAt }: StoredChallenge & { createdAt: number }) {
    try {
      this.#insert.run(domain, name, value, createdAt)
    } catch (error) {
      throw toStorageError(error)
    }
  }

  remove(challenges: StoredChallenge[]) {
    for (const { domain, name, value } of challenges) this.#delete.run(domain, name, value)
  }

  /** The challenges at a name, oldest first. */
  list({ domain, name }: { domain: string; name: string }): StoredChallenge[] {
    return this.#ofName.all(domain, name)
  }

  /** Challenges set before a time, at most 1,000. */
  before(time: number): StoredChallenge[] {
    return this.#before.all(time)
  }
}
