import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ignoreMissing } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { BlobRef, OpenBlob } from '../open-blob.ts'
import type { Connection } from '../postgres/connections.ts'
import { refuseUnfinished } from '../postgres/migrate-postgres.ts'
import type { Postgres } from '../postgres/postgres.ts'
import { join, name, type Sql, type SqlTransaction, type Statement, sql } from '../sql/sql.ts'
import type { SqliteSql } from '../sql/sqlite.ts'

/** A service as the backup commands see it, in both forms: in a data directory (SQLite), or where `DATABASE_URL` says. */
export interface ArchivedService {
  name: string
  /** Tables of the service, in the order of a restore. */
  tables: SqlTable[]
  accounts: ArchivedAccounts
  /** Opens a data directory to back it up, or else to fill it. @throws {DataDirError} if there is nothing to back up. */
  openFolder: (dataDir: string, isBackup: boolean) => Promise<ArchivedStores>
  openDatabase: (env: NodeJS.ProcessEnv, isBackup: boolean) => Promise<DatabaseStores>
}

/** Accounts and other small tables: in the database of the service, but in a file of their own in a data directory. */
export interface ArchivedAccounts {
  tables: SqlTable[]
  /** Opens the file of a data directory; undefined if there is none to read. */
  openFile: (dataDir: string, isReadOnly: boolean) => SqliteSql | undefined
  /** In PostgreSQL users are rows. */
  exportUsers: (snapshot: SqlTransaction) => Promise<PrivateFiles>
  importUsers: (transaction: Connection, files: PrivateFiles) => Promise<void>
}

/** The stores of a service, opened while it may be running. */
export interface ArchivedStores extends AsyncDisposable {
  database: Pick<Sql, 'snapshot'>
  /** Adds rows of a table of the service. Idempotent: existing rows stay unchanged. */
  write: (table: string, rows: Row[], blobs: BackupBlobs) => Promise<void>
  /** A blob, of a database as of its snapshot. No blob of the snapshot is deleted while the stores are open. */
  openBlob?: (digest: string, snapshot?: SqlTransaction) => Promise<OpenBlob | undefined>
}

export interface DatabaseStores extends ArchivedStores {
  database: Postgres
}

export interface DataPlaces {
  dataDir: string
  /** The users file, if outside the data directory. A restore does not overwrite an existing one. */
  usersFile?: string | undefined
}

/** Opens what a backup reads: a database, or a data directory. */
export async function openSource(
  service: ArchivedService,
  places: DataPlaces,
  env: NodeJS.ProcessEnv | undefined,
): Promise<BackupSource> {
  const { tables, accounts } = service
  if (!env) {
    const stores = await service.openFolder(places.dataDir, true)
    const { database, openBlob } = stores
    const read: BackupSource['read'] = async ({ rows, blobs }) => {
      await database.snapshot((snapshot) =>
        readAccounts(accounts, places, (others, files) => rows([...readTables(snapshot, tables), ...others], files)),
      )
      if (openBlob) await blobs(openBlob)
    }
    return { read, [Symbol.asyncDispose]: () => stores[Symbol.asyncDispose]() }
  }
  await using opened = new AsyncDisposableStack()
  const { database, openBlob } = opened.use(await service.openDatabase(env, true))
  // Small blobs are rows, so all are read in the snapshot; so is whether a restore is unfinished, since one may begin now.
  const read: BackupSource['read'] = ({ rows, blobs }) =>
    database.snapshot(async (snapshot) => {
      await refuseUnfinished(snapshot)
      const all = readTables(snapshot, [...tables, ...accounts.tables])
      await rows(all, await accounts.exportUsers(snapshot))
      if (openBlob) await blobs((digest) => openBlob(digest, snapshot))
    })
  return Object.assign(opened.move(), { read })
}

/** Reads the accounts of a data directory, and its private files. */
async function readAccounts(
  { openFile, tables }: ArchivedAccounts,
  places: DataPlaces,
  work: (tables: Table[], files: PrivateFiles) => Promise<void>,
): Promise<void> {
  const files = await readPrivateFiles(places)
  await using database = openFile(places.dataDir, true)
  if (!database) return work([], files)
  await database.snapshot(async (snapshot) => {
    const stored = await snapshot.all<{ name: string }>(sql`select name from sqlite_schema`)
    const isStored = (table: SqlTable) => stored.some((each) => each.name === table.name)
    await work(readTables(snapshot, tables.filter(isStored)), files)
  })
}

/** The users file and the JWT secret of a data directory. A file named by JWT_SECRET_FILE is not backed up. */
async function readPrivateFiles({ dataDir, usersFile }: DataPlaces): Promise<PrivateFiles> {
  const places = { 'users.json': usersFile, 'jwt.secret': undefined }
  const files: PrivateFiles = {}
  for (const [name, elsewhere] of Object.entries(places)) {
    const bytes = await readFile(elsewhere ?? resolve(dataDir, name)).catch(ignoreMissing)
    if (bytes) files[name] = bytes
  }
  return files
}

/** What a restore fills; `accounts` are in the same database, or in a file beside it. */
export interface FilledStores {
  main: Pick<ArchivedStores, 'write'>
  accounts: Sql | undefined
}

/** Restores rows of any table. */
export async function writeTable(
  { name, tables, accounts }: ArchivedService,
  stores: FilledStores,
  { table, rows }: { table: string; rows: Row[] },
  blobs: BackupBlobs,
): Promise<void> {
  const isOf = (each: SqlTable) => table === each.name
  if (stores.accounts && accounts.tables.some(isOf)) await writeRows(stores.accounts, table, rows)
  else if (tables.some(isOf)) await stores.main.write(table, rows, blobs)
  else throw new DataDirError(`The backup has a table ${table}, which the ${name} does not know.`)
}

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
