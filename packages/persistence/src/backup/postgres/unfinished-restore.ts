import { DataDirError } from '../../errors.ts'
import { lockSchema, restoreTable } from '../../postgres/migrate-postgres.ts'
import type { Postgres } from '../../postgres/postgres.ts'
import { ProcessList } from '../../postgres/process-list.ts'
import type { Transaction } from '../../postgres/transaction.ts'

/** A restore into PostgreSQL. While it is recorded there, no service starts, and the same restore can be resumed. */
export class UnfinishedRestore {
  readonly #database: Postgres
  readonly #table: string

  private constructor(database: Postgres) {
    this.#database = database
    this.#table = restoreTable(database.schema)
  }

  /**
   * Begins a restore into empty tables, or resumes an interrupted one of the same backup, which `backup` identifies.
   * @throws {DataDirError} when a service is running, or the tables are not empty.
   */
  static async begin(
    database: Postgres,
    { backup, tables }: { backup: string; tables: string[] },
  ): Promise<UnfinishedRestore> {
    const restore = new UnfinishedRestore(database)
    await database.transaction(async (transaction) => {
      await lockSchema(transaction, database.schema)
      await refuseRunning(transaction, database.schema)
      const [begun] = await transaction.query<{ backup: string }>(
        `select backup from ${restore.#table}`,
      )
      if (begun?.backup === backup) return
      if (begun) {
        throw new DataDirError(
          `Another backup was being restored into the schema ${database.schema}: finish that restore, or drop the schema.`,
        )
      }
      await refuseFilled(transaction, database.schema, tables)
      await transaction.query(`insert into ${restore.#table} (backup) values ($1)`, [backup])
    })
    return restore
  }

  /** How many rows of a table are restored. */
  async rowsDone(table: string): Promise<number> {
    const [row] = await this.#database.query<{ done: number | null }>(
      `select (rows_done ->> $1)::bigint as done from ${this.#table}`,
      [table],
    )
    return row?.done ?? 0
  }

  async setRowsDone(transaction: Transaction, table: string, count: number) {
    await transaction.query(
      `update ${this.#table} set rows_done = rows_done || jsonb_build_object($1::text, $2::bigint)`,
      [table, count],
    )
  }

  async end(transaction: Transaction): Promise<void> {
    await transaction.query(`delete from ${this.#table}`)
  }
}

async function refuseRunning(transaction: Transaction, schema: string) {
  if (!(await new ProcessList(schema).isAnyAlive(transaction))) return
  throw new DataDirError(
    `A service is using the schema ${schema}: stop all replicas. One that was killed counts for 10 seconds.`,
  )
}

async function refuseFilled(transaction: Transaction, schema: string, tables: string[]) {
  for (const table of tables) {
    const found = await transaction.query(`select 1 from ${schema}.${table} limit 1`)
    if (found.length === 0) continue
    throw new DataDirError(
      `The table ${schema}.${table} is not empty: a restore overwrites nothing.`,
    )
  }
}
