import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  authMigrations,
  importUsers,
  isAuthTable,
  isDroppedTable,
  openAuthFile,
  readAuthFolder,
  readAuthSchema,
} from '@domains-and-files/auth'
import { eventTables, webhookMigrations, webhookTables } from '@domains-and-files/events'
import {
  type BackupSource,
  type DatabaseTarget,
  DataDirError,
  type DataPlaces,
  Postgres,
  type RestoreTarget,
  type Row,
  readTables,
  type Sql,
  SqliteSql,
  type SqlTable,
  writeRows,
} from '@domains-and-files/persistence'
import type { Config } from '../config.ts'
import { databaseName, migrations, schema } from '../ledger/schema.ts'

/** Parents first. Leases, the shared budget and what replicas know of each other are not backed up. */
const tables: SqlTable[] = [
  { name: 'zones', key: ['digest'] },
  { name: 'sends', key: ['id'], identity: 'id' },
  { name: 'changes', key: ['id'], identity: 'id' },
  { name: 'acme_challenges', key: ['id'], identity: 'id' },
  { name: 'domain_list_passes', key: ['id'], identity: 'id' },
  { name: 'domain_list_pages', key: ['pass', 'page'] },
  { name: 'calls', key: ['id'], identity: 'id' },
  ...eventTables,
]

/** The database in a data directory. @throws {DataDirError} where there is none. */
export async function openFolderSource(places: DataPlaces): Promise<BackupSource> {
  const file = join(places.dataDir, databaseName)
  if (!existsSync(file))
    throw new DataDirError(`There is nothing of the domain-service in ${places.dataDir}.`)
  const database = new SqliteSql({ file, isReadOnly: true })
  return {
    read: ({ rows }) =>
      database.snapshot((snapshot) =>
        readAuthFolder(
          places,
          (auth) => rows([...readTables(snapshot, tables), ...auth.tables], auth.files),
          webhookTables,
        ),
      ),
    [Symbol.asyncDispose]: () => database.close(),
  }
}

export async function openFolderTarget(folder: string): Promise<RestoreTarget> {
  const database = new SqliteSql({ file: join(folder, databaseName), migrations })
  const tokens = openAuthFile(folder, webhookMigrations)
  const isBesideTokens = (table: string) =>
    isAuthTable(table) || webhookTables.some(({ name }) => name === table)
  return {
    write: (table, rows) => write(isBesideTokens(table) ? tokens : database, table, rows),
    async [Symbol.asyncDispose]() {
      await tokens.close()
      await database.close()
    },
  }
}

type Database = NonNullable<Config['database']>

/** Opens PostgreSQL for a backup or a restore. @throws {DatabaseRefusedError} when it cannot be used. */
const openPostgres = (settings: Database) =>
  Postgres.open({
    ...settings,
    timeoutMs: batchTimeoutMs,
    schema,
    migrations: { ...authMigrations, ...migrations, ...webhookMigrations },
    onError: () => undefined, // A statement that fails is reported by itself.
    isRestore: true,
  })

/** Milliseconds for one batch of rows. */
const batchTimeoutMs = 60_000

export async function openDatabaseSource(settings: Database): Promise<BackupSource> {
  const database = await openPostgres(settings)
  return {
    read: ({ rows }) =>
      database.snapshot(async (snapshot) => {
        const auth = await readAuthSchema(snapshot, webhookTables)
        await rows([...readTables(snapshot, tables), ...auth.tables], auth.files)
      }),
    [Symbol.asyncDispose]: () => database.close(),
  }
}

export async function openDatabaseTarget(settings: Database): Promise<DatabaseTarget> {
  const database = await openPostgres(settings)
  return {
    database,
    tables: [...[...tables, ...webhookTables].map(({ name }) => name), 'users', 'api_tokens'],
    write: (table, rows) => write(database, table, rows),
    writeFiles: importUsers,
    [Symbol.asyncDispose]: () => database.close(),
  }
}

async function write(database: Sql, table: string, rows: Row[]): Promise<void> {
  // Backups of earlier versions have a copy of the last domain list.
  if (isDroppedTable(table) || table === 'listed_domains') return
  await writeRows(database, table, rows.map(restored[table] ?? ((row) => row)))
}

/** Rows that a restore changes. */
const restored: Record<string, (row: Row) => Row> = {
  // It may have been carried out after the backup was made: an admin decides.
  changes: (row) => {
    const isPending = row.status === 'queued' || row.status === 'sending'
    return isPending ? { ...row, is_held: 1 } : row
  },
  // A late write would be repaired with a zone that is as old as the backup.
  sends: (row) => ({ ...row, unanswered: 0 }),
}
