import { setTimeout as wait } from 'node:timers/promises'
import { DatabaseUnavailableError } from '../errors.ts'
import type { Migrations } from '../sql/sql.ts'
import { ClientConnection, clientConfig, limited } from './connections.ts'
import { migratePostgres } from './migrate-postgres.ts'
import { explainDatabaseFailure, translateError } from './postgres-errors.ts'

/** Milliseconds for which a database that is starting is waited for. */
const startMs = 30_000
const connectMs = 10_000
const retryMs = 500

interface DatabaseOptions {
  url: string
  directUrl?: string | undefined
  schema: string
  migrations: Migrations
  /** Of this process; undefined for a backup or a restore. */
  processId: string | undefined
  /** Milliseconds in which the database must respond. Migrations themselves have no limit. */
  limitMs: number
  /** Receives the reason why the database is waited for. */
  onError: (error: unknown) => void
}

/** Migrates the database. @throws {DatabaseRefusedError} when it cannot be reached or used. */
export async function openDatabase(options: DatabaseOptions): Promise<void> {
  const deadline = Date.now() + startMs
  let isReported = false
  for (;;) {
    try {
      return await migrateOnce(options)
    } catch (error) {
      const failure = translateError(error)
      const isWorthRetrying = failure instanceof DatabaseUnavailableError && !isRefusal(error)
      if (!isWorthRetrying || Date.now() > deadline) {
        throw explainDatabaseFailure(
          failure,
          options.directUrl ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL',
        )
      }
      if (!isReported) options.onError(failure)
      isReported = true
    }
    await wait(retryMs)
  }
}

async function migrateOnce(options: DatabaseOptions) {
  const { url, directUrl, schema, limitMs } = options
  const { default: pg } = await import('pg')
  const name = `${schema} migration`
  const config = await clientConfig({ url: directUrl ?? url, timeoutMs: 0, name })
  const client = new pg.Client({ ...config, connectionTimeoutMillis: connectMs })
  client.on('error', () => undefined) // It rejects the query, too.
  try {
    await client.connect()
    const connection = new ClientConnection(client, schema)
    await client.query(limited(limitMs, 'begin; set local statement_timeout = 0'))
    await migratePostgres(connection, options)
    await client.query('commit')
  } finally {
    client.end().catch(() => undefined)
  }
}

// Wrong password, no such database: waiting does not help.
const isRefusal = (error: unknown) =>
  error instanceof Error && 'code' in error && /^(?:28|3D)/.test(String(error.code))
