import { DatabaseSync } from 'node:sqlite'
import type { Postgres } from '../../postgres/postgres.ts'
import type { Transaction } from '../../postgres/transaction.ts'
import type { ImportJob } from './database-store.ts'
import { columnsOf } from './table-columns.ts'

const rowsPerTransaction = 500

/**
 * Copies tables of a SQLite database into PostgreSQL, parents first, in transactions that a resumed restore does not
 * repeat. Further columns in PostgreSQL get their defaults.
 */
export async function importTables(tables: string[], job: ImportJob): Promise<void> {
  const { database, file, onProgress } = job
  const sqlite = new DatabaseSync(file, { readOnly: true })
  try {
    const counts = tables.map((table) => countRows(sqlite, table))
    const total = counts.reduce((sum, count) => sum + count, 0)
    let before = 0
    for (const [index, table] of tables.entries()) {
      await importTable(sqlite, table, job, (rows) =>
        onProgress((before + rows) / Math.max(1, total)),
      )
      await importSequence(sqlite, table, database)
      before += counts[index] ?? 0
    }
  } finally {
    sqlite.close()
  }
}

async function importTable(
  sqlite: DatabaseSync,
  table: string,
  { database, restore, signal }: ImportJob,
  onRows: (done: number) => void,
) {
  const columns = columnsOf(sqlite, table)
  let done = await restore.rowsDone(table)
  // The file does not change, so its rows have the same order each time.
  const rows = sqlite.prepare(`select ${columns} from ${table} limit -1 offset ?`).iterate(done)
  for (;;) {
    signal.throwIfAborted()
    const batch = take(rows, rowsPerTransaction)
    if (batch.length === 0) return
    const values = batch.flatMap((row) => columns.map((column) => toPostgres(row[column])))
    await database.transaction(async (transaction) => {
      await insertRows(
        transaction,
        `${database.schema}.${table} (${columns})`,
        columns.length,
        values,
      )
      await restore.setRowsDone(transaction, table, done + batch.length)
    })
    done += batch.length
    onRows(done)
  }
}

function take<Item>(items: Iterator<Item>, max: number): Item[] {
  const taken: Item[] = []
  while (taken.length < max) {
    const next = items.next()
    if (next.done) break
    taken.push(next.value)
  }
  return taken
}

async function insertRows(
  transaction: Transaction,
  into: string,
  width: number,
  values: unknown[],
) {
  const count = values.length / width
  const placeholders = Array.from(
    { length: count },
    (_row, row) =>
      `(${Array.from({ length: width }, (_column, column) => `$${row * width + column + 1}`)})`,
  )
  await transaction.query(
    `insert into ${into} overriding system value values ${placeholders} on conflict do nothing`,
    values,
  )
}

async function importSequence(sqlite: DatabaseSync, table: string, database: Postgres) {
  const isKept = sqlite.prepare("select 1 from sqlite_schema where name = 'sqlite_sequence'").get()
  if (!isKept) return
  const row = sqlite.prepare('select seq from sqlite_sequence where name = ?').get(table)
  const last = Number(row?.seq ?? 0)
  if (last === 0) return
  await database.query("select setval(pg_get_serial_sequence($1, 'id'), $2)", [
    `${database.schema}.${table}`,
    last,
  ])
}

const countRows = (sqlite: DatabaseSync, table: string) =>
  Number(sqlite.prepare(`select count(*) count from ${table}`).get()?.count)

const toPostgres = (value: unknown) => (value instanceof Uint8Array ? Buffer.from(value) : value)
