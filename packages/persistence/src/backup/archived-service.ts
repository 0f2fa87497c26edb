import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { OpenBlob } from '../open-blob.ts'
import type { Connection } from '../postgres/connections.ts'
import { refuseUnfinished } from '../postgres/migrate-postgres.ts'
import type { Postgres } from '../postgres/postgres.ts'
import { type Sql, type SqlTransaction, sql } from '../sql/sql.ts'
import type { SqliteSql } from '../sql/sqlite.ts'
import {
  type BackupBlobs,
  type BackupSource,
  type PrivateFiles,
  type Row,
  readTables,
  type SqlTable,
  type Table,
  writeRows,
} from './archive.ts'

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
    const bytes = await readFile(elsewhere ?? join(dataDir, name)).catch(ignoreMissing)
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
