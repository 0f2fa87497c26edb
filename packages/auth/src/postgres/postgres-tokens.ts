import type { Postgres } from '@domains-and-files/persistence'
import { StoredToken, type TokenStore } from '../api-tokens/stored-token.ts'
import { insertToken } from './auth-files.ts'

interface Row {
  definition: object
  last_used_at: Date | null
}

/** API tokens in PostgreSQL, read for each use: a revocation counts on every replica at once. */
export class PostgresTokens implements TokenStore {
  readonly #database: Postgres
  readonly #table: string
  readonly #report: (error: unknown) => void
  readonly #touching = new Set<Promise<void>>()

  /** `report` receives failed writes of `last_used_at`. */
  constructor(database: Postgres, report: (error: unknown) => void) {
    this.#database = database
    this.#table = `${database.schema}.api_tokens`
    this.#report = report
  }

  // A digest of 190 random bits cannot be guessed by the time that an index takes.
  async find(digest: string) {
    const rows = await this.#database.query<Row>(
      `select definition, last_used_at from ${this.#table} where digest = decode($1, 'hex')`,
      [digest],
    )
    return rows.map(tokenOf)[0]
  }

  async list(owner?: string) {
    const rows = await this.#database.query<Row>(
      `select definition, last_used_at from ${this.#table} where $1::text is null or owner = $1
      order by position`,
      [owner ?? null],
    )
    return rows.map(tokenOf)
  }

  async add(token: StoredToken) {
    await this.#database.transaction(async (transaction) => {
      await transaction.query(
        `delete from ${this.#table} where expires_at < now() - interval '30 days'`,
      )
      await insertToken(transaction, this.#database.schema, token)
    })
  }

  async remove(id: string, owner?: string) {
    if (!StoredToken.shape.id.safeParse(id).success) return false
    const removed = await this.#database.transaction((transaction) =>
      transaction.query(
        `delete from ${this.#table} where id = $1 and ($2::text is null or owner = $2) returning id`,
        [id, owner ?? null],
      ),
    )
    return removed.length > 0
  }

  touch(id: string, at: Date) {
    const touched: Promise<void> = this.#database
      .query(
        `update ${this.#table} set last_used_at = greatest(last_used_at, $2::timestamptz) where id = $1`,
        [id, at],
      )
      .then(() => undefined, this.#report)
      .finally(() => this.#touching.delete(touched))
    this.#touching.add(touched)
  }

  async close() {
    await Promise.all(this.#touching)
  }
}

const tokenOf = ({ definition, last_used_at: at }: Row): StoredToken =>
  StoredToken.parse({ ...definition, last_used_at: at?.toISOString() ?? null })
