import type { Connection } from './connections.ts'

/** How long a committed transaction can be looked up. A lookup starts within seconds. */
const retention = "interval '10 minutes'"

/**
 * A row for each recent transaction that wrote, in the transaction itself. After a lost COMMIT answer the row tells
 * whether the transaction took effect. `pg_xact_status` would not do: after a crash PostgreSQL assigns transaction ids
 * again that it had not yet written to disk, so another transaction's outcome would be reported.
 */
export class CommitLog {
  readonly schema: string
  readonly #table: string

  constructor(schema: string) {
    this.schema = schema
    this.#table = `${schema}.commits`
  }

  /** SQL that records the transaction `id`, a UUID, and commits it. If the first statement fails, the second is not run. */
  commitStatement(id: string): string {
    return `insert into ${this.#table} (id) values ('${id}'); commit`
  }

  /**
   * Whether the transaction took effect. If it did not, it never will: its row is inserted here, so its own COMMIT would
   * fail. Waits for a transaction in progress.
   */
  async isCommitted(connection: Connection, id: string): Promise<boolean> {
    const inserted = await connection.query(
      `insert into ${this.#table} (id, is_fence) values ($1, true) on conflict (id) do nothing returning id`,
      [id],
    )
    if (inserted.length > 0) return false
    const [row] = await connection.query<{ is_fence: boolean }>(
      `select is_fence from ${this.#table} where id = $1`,
      [id],
    )
    return row !== undefined && !row.is_fence
  }

  /** SQL that removes old rows. */
  pruneStatement(): string {
    return `delete from ${this.#table} where committed_at < now() - ${retention}`
  }

  static tableStatement(schema: string): string {
    return `create table if not exists ${schema}.commits (
      id uuid primary key,
      committed_at timestamptz not null default now(),
      is_fence boolean not null default false
    )`
  }
}
