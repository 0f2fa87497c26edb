import { randomUUID } from 'node:crypto'
import type { Pool, QueryResultRow } from 'pg'
import type { Migrations, Sql } from '../sql/sql.ts'
import { Connection, clientConfig, limited, serverLimits, withClient } from './connections.ts'
import { Listener } from './listener.ts'
import { migratePostgres } from './migrate-postgres.ts'
import { pruneStatement, recordProcess, removeProcess } from './own-tables.ts'
import { Probe } from './probe.ts'
import {
  runSnapshot,
  runTransaction,
  type Transaction,
  type TransactionOptions,
} from './transaction.ts'

export interface PostgresOptions {
  url: string
  /** A connection without a pooler in transaction mode, for LISTEN and migrations. */
  directUrl?: string | undefined
  maxConnections: number
  /** Milliseconds after which a request that meets a database without a response is answered. */
  timeoutMs: number
  /** Created if it is missing. */
  schema: string
  migrations: Migrations
  /** Opens it for a backup or a restore: not as a service, and also while a restore is unfinished. */
  isRestore?: boolean | undefined
  /** Errors of idle connections, and changes of availability as the probe sees them. */
  onError: (error: unknown) => void
}

interface Parts {
  pool: Pool
  /** Absent without a direct connection. */
  listener: Listener | undefined
  /** Absent for a backup or a restore. */
  processId: string | undefined
}

/** Part of the time limit after which a statement without a response has failed; the rest is for the answer. */
const statementShare = 0.95

/** Milliseconds between two checks in the background. */
const probeIntervalMs = 2000
const pruneIntervalMs = 60_000

/** A PostgreSQL database. Its statements work behind a pooler in transaction mode: none depends on session state. */
export class Postgres extends Connection implements Sql {
  readonly #parts: Parts
  readonly #probe: Probe
  readonly #transactions: TransactionOptions
  #prunedAt = Date.now()
  #closed: Promise<void> | undefined

  private constructor(parts: Parts, options: PostgresOptions) {
    super(options.schema)
    this.#parts = parts
    const { schema } = options
    this.#transactions = { pool: parts.pool, schema, limitMs: limitOf(options) }
    this.#probe = new Probe({
      check: () => this.#check(),
      intervalMs: probeIntervalMs,
      onLost: options.onError,
    })
  }

  /**
   * Applies the migrations and opens the pool. Waits up to 30 seconds for a database that is starting.
   * @throws {DatabaseRefusedError} when it cannot be reached or used.
   */
  static async open(options: PostgresOptions): Promise<Postgres> {
    const { url, directUrl, schema, maxConnections, onError } = options
    const timeoutMs = limitOf(options)
    if (!/^[a-z_]+$/.test(schema)) throw new Error(`${schema} is not a schema name`)
    const name = options.isRestore ? `${schema} maintenance` : schema
    const { default: pg } = await import('pg')
    const processId = options.isRestore ? undefined : randomUUID()
    await migratePostgres({ ...options, processId, limitMs: timeoutMs })
    const config = await clientConfig({ url, timeoutMs, name })
    const limits = directUrl === undefined ? await serverLimits(config) : {}
    const pool = new pg.Pool({
      ...{ ...config, ...limits },
      ...{ max: maxConnections, idleTimeoutMillis: 30_000 },
    })
    pool.on('error', (error) => {
      Reflect.deleteProperty(error, 'client') // With all its settings, it is not for a log.
      onError(error)
    })
    // A connection that fails while it is in use rejects its query, and emits the error too.
    pool.on('connect', (client) => client.on('error', () => undefined))
    const direct = directUrl && (await clientConfig({ url: directUrl, timeoutMs, name }))
    const connect = async () => {
      const client = new pg.Client(direct)
      await client.connect()
      return client
    }
    const listener = direct ? new Listener({ connect, onError }) : undefined
    return new Postgres({ pool, listener, processId }, options)
  }

  /** Opens it for a command that backs up or restores: its statements may take a minute. @throws as `open` */
  static openForRestore(
    options: Omit<PostgresOptions, 'timeoutMs' | 'isRestore' | 'onError'>,
  ): Promise<Postgres> {
    // A statement that fails is reported by itself.
    const settings = { timeoutMs: 60_000, isRestore: true, onError: () => undefined }
    return Postgres.open({ ...options, ...settings })
  }

  /**
   * Runs one statement: a read, or a write that may safely be repeated. If the connection is lost, a write may have taken
   * effect although `DatabaseUnavailableError` is thrown.
   */
  protected execute<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const { pool, limitMs } = this.#transactions
    return withClient(pool, limitMs, (client, leftMs) =>
      client.query<Row>(limited(leftMs, text, values)),
    )
  }

  /**
   * Runs one read-write transaction (READ COMMITTED). If it throws, it had no effect, except with `OutcomeUnknownError`.
   * After a lost COMMIT answer the outcome is looked up for up to five seconds.
   */
  transaction<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    return runTransaction(this.#transactions, run)
  }

  /** Runs a read-only transaction on one snapshot (REPEATABLE READ). */
  snapshot<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    return runSnapshot(this.#transactions, run)
  }

  /**
   * Calls the listener with each notification's payload, and with an empty payload whenever notifications may have been
   * lost. False without a direct connection: the caller must poll.
   */
  async listen(channel: string, listener: (payload: string) => void): Promise<boolean> {
    if (!/^[a-z_]+$/.test(channel)) throw new Error(`${channel} is not a channel name`)
    await this.#parts.listener?.listen(channel, listener)
    return this.#parts.listener !== undefined
  }

  /** What the probe last saw. */
  get isAvailable(): boolean {
    return this.#probe.isAvailable
  }

  get pool(): { total: number; idle: number; waiting: number } {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#parts.pool
    return { total, idle, waiting }
  }

  /** Ends all connections, when their transactions have ended. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close() {
    const { pool, listener, processId } = this.#parts
    await this.#probe.close()
    await listener?.close()
    if (processId !== undefined) await removeProcess(this, processId).catch(() => undefined)
    await pool.end()
  }

  async #check() {
    const { processId } = this.#parts
    const isPruneDue = Date.now() - this.#prunedAt >= pruneIntervalMs
    await this.query('select 1')
    // A database that cannot be written to still answers reads.
    if (processId !== undefined) await recordProcess(this, processId).catch(() => undefined)
    if (!isPruneDue) return
    await this.query(pruneStatement(this.schema)).catch(() => undefined)
    this.#prunedAt = Date.now()
  }
}

const limitOf = ({ timeoutMs }: PostgresOptions) => Math.round(timeoutMs * statementShare)
