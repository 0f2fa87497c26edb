import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { archivedAccounts, authMigrations } from '@domains-and-files/auth'
import { eventTables, webhookMigrations, webhookTables } from '@domains-and-files/events'
import { readDatabaseConfig } from '@domains-and-files/http'
import {
  type ArchivedService,
  type CommandLine,
  DataDirError,
  Postgres,
  type Row,
  runDataCommand,
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

const archived = <Database extends Postgres | SqliteSql>(database: Database) => ({
  database,
  write: (table: string, rows: Row[]) => writeRows(database, table, rows.map(restored[table] ?? ((row) => row))),
  [Symbol.asyncDispose]: () => database.close(),
})

const service: ArchivedService = {
  name: 'domain-service',
  tables,
  accounts: archivedAccounts({ tables: webhookTables, migrations: webhookMigrations }),
  async openFolder(dataDir, isBackup) {
    const file = join(dataDir, databaseName)
    if (!isBackup) return archived(new SqliteSql({ file, migrations }))
    if (!existsSync(file)) throw new DataDirError(`There is nothing of the domain-service in ${dataDir}.`)
    return archived(new SqliteSql({ file, isReadOnly: true }))
  },
  async openDatabase(env) {
    const all = { ...authMigrations, ...migrations, ...webhookMigrations }
    return archived(await Postgres.openForRestore({ ...readDatabaseConfig(env), schema, migrations: all }))
  },
}

/** Runs the command with these arguments, and returns its exit status. */
export const manageData = (args: string[], line: CommandLine): Promise<number> => runDataCommand(service, args, line)

if (import.meta.main) process.exitCode = await manageData(process.argv.slice(2), process)
