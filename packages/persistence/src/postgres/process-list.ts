import { randomUUID } from 'node:crypto'
import type { Connection } from './connections.ts'

/** A process that has not been seen for so long is gone. */
const aliveFor = "interval '10 seconds'"

/**
 * The processes that use a schema, each seen every few seconds: a restore must not begin under a running service. The
 * connections of the server would not do, since those of a pooler outlive processes and have no process of their own.
 */
export class ProcessList {
  readonly #table: string
  readonly #id = randomUUID()

  constructor(schema: string) {
    this.#table = `${schema}.processes`
  }

  /** Records that this process is alive. */
  async beat(connection: Connection): Promise<void> {
    await connection.query(
      `insert into ${this.#table} (id, seen_at) values ($1, clock_timestamp())
      on conflict (id) do update set seen_at = excluded.seen_at`,
      [this.#id],
    )
  }

  /** Removes this process, and others that are long gone. */
  async leave(connection: Connection): Promise<void> {
    await connection.query(
      `delete from ${this.#table} where id = $1 or seen_at < now() - interval '1 day'`,
      [this.#id],
    )
  }

  async isAnyAlive(connection: Connection): Promise<boolean> {
    const alive = await connection.query(
      `select 1 from ${this.#table} where seen_at > clock_timestamp() - ${aliveFor} limit 1`,
    )
    return alive.length > 0
  }

  static tableStatement(schema: string): string {
    return `create table ${schema}.processes (id uuid primary key, seen_at timestamptz not null)`
  }
}
