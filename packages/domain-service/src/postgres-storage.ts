import { randomUUID } from 'node:crypto'
import { authMigrations } from '@domains-and-files/auth'
import { webhookMigrations } from '@domains-and-files/events'
import { type Logger, registerDatabaseMetrics, registerGauges } from '@domains-and-files/http'
import { BackgroundTask, Postgres } from '@domains-and-files/persistence'
import { SharedBudget } from './budget/shared-budget.ts'
import type { Config } from './config.ts'
import { AwaitedChanges } from './ledger/replicas/awaited-changes.ts'
import { changesChannel, Leases } from './ledger/replicas/leases.ts'
import { migrations, schema } from './ledger/schema.ts'
import { accountName, type Storage, type Surroundings } from './storage.ts'
import type { Replicas } from './zones/zone-dependencies.ts'

type Database = NonNullable<Config['database']>

/** The database of this service, migrated. @throws {DataDirError} when it cannot be reached or used. */
export const openPostgres = (database: Database, log: Logger) =>
  Postgres.open({
    ...database,
    schema,
    migrations: { ...authMigrations, ...migrations, ...webhookMigrations },
    onError: (error) => log.warn({ err: error }, 'database not available'),
  })

/** A lease lasts this much longer than a call to the registrar may take. */
const leaseMarginMs = 15_000
const taskIntervalMs = 2_000

/** PostgreSQL, shared by any number of replicas. @throws {DataDirError} when it cannot be reached or used. */
export async function openPostgresStorage(
  database: Database,
  { config, log, metrics }: Surroundings,
): Promise<Storage> {
  const postgres = await openPostgres(database, log)
  const replica = randomUUID()
  const budget = new SharedBudget(postgres, { account: accountName(config), replica })
  const leases = new Leases({
    sql: postgres,
    holder: replica,
    ttlMs: config.registrarTimeoutMs + leaseMarginMs,
    onError: (error) => log.warn({ err: error }, 'lease not renewed or released'),
  })
  registerDatabaseMetrics(metrics, postgres)
  const held = 'Leases that this replica holds, of domains and of tasks'
  registerGauges(metrics, { zone_leases_held: [held, () => leases.size] })
  const awaited = new AwaitedChanges(postgres)
  const replicas: Replicas = { leases, awaited, isListening: false, onChange: () => undefined }
  replicas.isListening = postgres.listen(changesChannel, (domain) => replicas.onChange(domain || undefined))
  const tasks = shareTasks(postgres, leases, log)
  return {
    database: postgres,
    postgres,
    budget,
    replicas,
    isActive: tasks.isActive,
    startTasks: tasks.start,
    close: async () => {
      for (const each of [tasks, leases, awaited, postgres]) await each.close()
    },
  }
}

const tasksLease = 'background tasks'

/** Background tasks that one replica at a time runs. If it dies, another one takes over when its lease expires. */
function shareTasks(postgres: Postgres, leases: Leases, log: Logger) {
  let tasks: BackgroundTask | undefined
  const isActive = () => leases.current(tasksLease) !== undefined
  const start = (run: () => Promise<void>) => {
    tasks = new BackgroundTask({
      run: async () => {
        if (!isActive()) await leases.tryAcquire(tasksLease)
        if (isActive() && postgres.isAvailable) await run()
      },
      onError: (error) => log.warn({ err: error }, 'background tasks not run'),
    })
    return tasks.start(taskIntervalMs)
  }
  return { isActive, start, close: async () => tasks?.close() }
}
