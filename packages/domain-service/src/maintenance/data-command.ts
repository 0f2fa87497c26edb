import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  authMigrations,
  authTables,
  exportUsers,
  importUsers,
  openAuthFile,
  readAuthFolder,
} from '@domains-and-files/auth'
import { eventTables, webhookMigrations, webhookTables } from '@domains-and-files/events'
import { readDatabaseConfig } from '@domains-and-files/http'
import {
  type ArchivedService,
  type CommandLine,
  DataDirError,
  Postgres,
  type RestoreTarget,
  type Row,
  readTables,
  refuseUnfinished,
  runDataCommand,
  type Sql,
  SqliteSql,
  type SqlTable,
  writeRows,
} from '@domains-and-files/persistence'
import { databaseName, migrations, schema } from '../ledger/schema.ts'

/** Referenced tables first. Leases, the shared budget and what replicas share about each other are not backed up. */
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

/** Beside the API tokens. */
const otherTables = [...authTables, ...webhookTables]

/** Tables of backups of earlier versions: ended sessions, and a copy of the last domain list. */
const formerTables = ['ended_sessions', 'listed_domains']

/** Rows that a restore changes. */
const restored: Record<string, (row: Row) => Row> = {
  // A pending change may have been carried out after the backup was made: an admin decides.
  changes: (row) => {
    const isPending = row.status === 'queued' || row.status === 'sending'
    return isPending ? { ...row, is_held: 1 } : row
  },
  // No late write is repaired: the repair would restore a zone as old as the backup.
  sends: (row) => ({ ...row, unanswered: 0 }),
}

/** `tokens` holds the API tokens: the same database, or a file beside it. */
const targetOf = (database: Sql, tokens: Sql, opened: AsyncDisposableStack): RestoreTarget => ({
  async write(table, rows) {
    if (formerTables.includes(table)) return
    const isOther = otherTables.some(({ name }) => name === table)
    const change = restored[table] ?? ((row) => row)
    await writeRows(isOther ? tokens : database, table, rows.map(change))
  },
  [Symbol.asyncDispose]: () => opened.disposeAsync(),
})

function openPostgres(env: NodeJS.ProcessEnv): Promise<Postgres> {
  const all = { ...authMigrations, ...migrations, ...webhookMigrations }
  return Postgres.openForRestore({ ...readDatabaseConfig(env), schema, migrations: all })
}

const service: ArchivedService = {
  name: 'domain-service',
  folders: [],
  async openFolderSource(places) {
    const file = join(places.dataDir, databaseName)
    if (!existsSync(file)) throw new DataDirError(`There is nothing of the domain-service in ${places.dataDir}.`)
    const database = new SqliteSql({ file, isReadOnly: true })
    return {
      read: ({ rows }) =>
        database.snapshot((snapshot) =>
          readAuthFolder(places, otherTables, (others, files) =>
            rows([...readTables(snapshot, tables), ...others], files),
          ),
        ),
      [Symbol.asyncDispose]: () => database.close(),
    }
  },
  async openFolder(folder) {
    const opened = new AsyncDisposableStack()
    const database = new SqliteSql({ file: join(folder, databaseName), migrations })
    opened.defer(() => database.close())
    const tokens = openAuthFile(folder, webhookMigrations)
    opened.defer(() => tokens.close())
    return targetOf(database, tokens, opened)
  },
  async openDatabaseSource(env) {
    const database = await openPostgres(env)
    return {
      read: ({ rows }) =>
        database.snapshot(async (snapshot) => {
          await refuseUnfinished(snapshot)
          const all = readTables(snapshot, [...tables, ...otherTables])
          await rows(all, await exportUsers(snapshot))
        }),
      [Symbol.asyncDispose]: () => database.close(),
    }
  },
  async openDatabase(env) {
    const opened = new AsyncDisposableStack()
    const database = await openPostgres(env)
    opened.defer(() => database.close())
    return {
      ...targetOf(database, database, opened),
      database,
      tables: [...[...tables, ...otherTables].map(({ name }) => name), 'users'],
      writeFiles: importUsers,
    }
  },
}

/** Runs the command with these arguments, and returns its exit status. */
export const manageData = (args: string[], line: CommandLine): Promise<number> => runDataCommand(service, args, line)

if (import.meta.main) process.exitCode = await manageData(process.argv.slice(2), process)
