import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { Transaction } from '../../postgres/transaction.ts'
import type { ExportJob } from './database-store.ts'
import { columnsOf, type TableOf } from './table-columns.ts'

const rowsPerFetch = 1000

/**
 * Copies tables from PostgreSQL into SQLite. They have the same names and columns; in PostgreSQL they may have further
 * ones.
 */
export async function exportTables(
  snapshot: Transaction,
  { schema, tables }: { schema: string; tables: string[] },
  { file, signal, onProgress }: ExportJob,
): Promise<void> {
  const total = await countRows(snapshot, schema, tables)
  const sqlite = new DatabaseSync(file)
  let done = 0
  try {
    sqlite.exec('pragma journal_mode = delete; pragma synchronous = off; pragma foreign_keys = off')
    sqlite.exec('begin')
    for (const table of tables) {
      for await (const count of exportTable(snapshot, sqlite, { schema, table })) {
        signal.throwIfAborted()
        done += count
        onProgress(done / Math.max(1, total))
      }
      await exportSequence(snapshot, sqlite, { schema, table })
    }
    sqlite.exec('commit')
  } finally {
    sqlite.close()
  }
}

/** Yields the number of rows after each batch. */
async function* exportTable(
  snapshot: Transaction,
  sqlite: DatabaseSync,
  { schema, table }: TableOf,
) {
  const columns = columnsOf(sqlite, table)
  sqlite.exec(`delete from ${table}`)
  const insert = sqlite.prepare(
    `insert into ${table} (${columns}) values (${columns.map(() => '?')})`,
  )
  await snapshot.query(
    `declare export_${table} no scroll cursor for select ${columns} from ${schema}.${table}`,
  )
  for (;;) {
    const rows = await snapshot.query(`fetch ${rowsPerFetch} from export_${table}`)
    if (rows.length === 0) break
    for (const row of rows) insert.run(...columns.map((column) => toSqlite(row[column])))
    yield rows.length
  }
  await snapshot.query(`close export_${table}`)
}

// Ids are not given out again, also not those of rows that were deleted.
async function exportSequence(
  snapshot: Transaction,
  sqlite: DatabaseSync,
  { schema, table }: TableOf,
) {
  const [column] = await snapshot.query<{ sequence: string }>(
    `select pg_get_serial_sequence($1, column_name) sequence from information_schema.columns
    where table_schema = $2 and table_name = $3 and is_identity = 'YES' and column_name = 'id'`,
    [`${schema}.${table}`, schema, table],
  )
  if (!column || !hasSequence(sqlite, table)) return
  const [state] = await snapshot.query<{ last_value: number; is_called: boolean }>(
    `select last_value, is_called from ${column.sequence}`,
  )
  const last = state?.is_called ? state.last_value : 0
  sqlite.prepare('delete from sqlite_sequence where name = ?').run(table)
  sqlite.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(table, last)
}

const hasSequence = (sqlite: DatabaseSync, table: string) =>
  sqlite
    .prepare("select 1 from sqlite_schema where name = ? and sql like '%autoincrement%'")
    .get(table) !== undefined

async function countRows(snapshot: Transaction, schema: string, tables: string[]) {
  let total = 0
  for (const table of tables) {
    const [row] = await snapshot.query<{ count: number }>(`select count(*) from ${schema}.${table}`)
    total += row?.count ?? 0
  }
  return total
}

function toSqlite(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'number' || typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Uint8Array) return value
  throw new Error(`a column of type ${typeof value} cannot be backed up`)
}
