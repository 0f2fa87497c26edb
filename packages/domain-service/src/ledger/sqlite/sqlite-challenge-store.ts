import type { Database } from 'better-sqlite3'
import type { ChallengeStore, StoredChallenge } from '../challenge-store.ts'
import { toStorageError } from './storage-errors.ts'

/** The ACME challenges in the service's own SQLite database. */
export class SqliteChallengeStore implements ChallengeStore {
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

  async add({ domain, name, value, createdAt }: StoredChallenge & { createdAt: number }) {
    try {
      this.#insert.run(domain, name, value, createdAt)
    } catch (error) {
      throw toStorageError(error)
    }
  }

  async remove(challenges: StoredChallenge[]) {
    for (const { domain, name, value } of challenges) this.#delete.run(domain, name, value)
  }

  async list({ domain, name }: { domain: string; name: string }) {
    return this.#ofName.all(domain, name)
  }

  async before(time: number) {
    return this.#before.all(time)
  }
}
