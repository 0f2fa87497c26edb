import type { BlobRef, OpenBlob } from '../open-blob.ts'
import { join, name, type Sql, type SqlTransaction, type Statement, sql } from '../sql/sql.ts'

/** The columns of a row by name: text, integers, null and Buffers. */
export type Row = Record<string, unknown>

export interface Table {
  name: string
  rows: () => AsyncIterable<Row[]>
}

/** Name of the table that lists the blobs of a backup: one `BlobRef` per row, sorted by digest. Not restored. */
export const blobTable = 'blobs'

/** File in the folder of a snapshot with the time of its last successful full verification. */
export const verifiedName = 'verified'

export interface Damage {
  digest: string
  fault: string
}

/** Small private files by their name, such as `users.json`. */
export type PrivateFiles = Record<string, Buffer | string>

/** The stores of a service, opened for a backup while the service may be running. */
export interface BackupSource extends AsyncDisposable {
  /** Calls `rows`, then `blobs`. Prevents deletion of the snapshot's blobs meanwhile. */
  read(work: {
    rows: (tables: Table[], files: PrivateFiles) => Promise<void>
    blobs: (open: (digest: string) => Promise<OpenBlob | undefined>) => Promise<void>
  }): Promise<void>
}

/** The blobs of a backup, for its restore. */
export interface BackupBlobs {
  /** A blob to read; undefined, and reported as damaged, if the repository lacks it. */
  open: (ref: BlobRef) => Promise<OpenBlob | undefined>
  onDamage: (damage: Damage) => void
  onBlob: (blob: { size: number }) => void
}

/** The results, after all tasks have settled. @throws the first error. */
export async function allEnded<T>(tasks: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(tasks)
  return Promise.all(tasks)
}

/** A table of both databases, with the same columns in each. */
export interface SqlTable {
  name: string
  /** Columns in a backup; by default all. */
  columns?: Statement
  /** The columns of a unique key, in order. */
  key: string[]
  /** The identity column, if there is one. */
  identity?: string
}

/** The rows of tables in a snapshot. */
export const readTables = (snapshot: SqlTransaction, tables: SqlTable[]): Table[] =>
  tables.map((table) => ({ name: table.name, rows: () => readRows(snapshot, table) }))

/** Adds rows from `readTables` in one transaction. Rows with existing keys are skipped. */
export const writeRows = (database: Sql, table: string, rows: Row[]): Promise<void> =>
  database.transaction((transaction) => insertRows(transaction, table, rows))

export async function insertRows(transaction: SqlTransaction, table: string, rows: Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  // At most 32,766 values can be bound in SQLite, and 65,535 in PostgreSQL.
  const maxRows = Math.floor(30_000 / columns.length)
  for (let at = 0; at < rows.length; at += maxRows) {
    const values = rows.slice(at, at + maxRows).map((row) => sql`(${join(columns.map((column) => row[column]))})`)
    await transaction.run(
      sql`insert into ${name(table)} (${columnList(columns)}) values ${join(values)} on conflict do nothing`,
    )
  }
}

async function* readRows(
  snapshot: SqlTransaction,
  { name: table, key, columns = sql`*` }: SqlTable,
): AsyncGenerator<Row[]> {
  const order = columnList(key)
  let after: Statement = sql``
  for (;;) {
    const rows: Row[] = await snapshot.all(
      sql`select ${columns} from ${name(table)} ${after} order by ${order} limit ${batchRows}`,
    )
    const last = rows.at(-1)
    if (!last) return
    yield rows
    after = sql`where (${order}) > (${join(key.map((column) => last[column]))})`
  }
}

const batchRows = 500

const columnList = (columns: string[]): Statement => join(columns.map(column))

// Names of columns are not qualified with the schema.
function column(identifier: string): Statement {
  if (!/^[a-z_][a-z0-9_]*$/.test(identifier)) throw new Error(`${identifier} is not a column`)
  return sql([identifier])
}
