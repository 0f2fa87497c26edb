import type { Pool, QueryResultRow } from 'pg'
import type { Migrations, Sql } from '../sql/sql.ts'
import { CommitLog } from './commit-log.ts'
import { acquire, clientConfig, limited, PostgresStatements, serverLimits } from './connections.ts'
import { Listener } from './listener.ts'
import { openDatabase } from './open-database.ts'
import { translateError } from './postgres-errors.ts'
import { Probe } from './probe.ts'
import { ProcessList } from './process-list.ts'
import {
  runTransaction,
  snapshotTransaction,
  type Transaction,
  writeTransaction,
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
  /** Absent without a direct connection. */
  listener?: Listener
  /** Absent for a backup or a restore. */
  processes: ProcessList | undefined
}

/** Part of the time limit after which a statement without a response has failed; the rest is for the answer. */
const statementShare = 0.95

/** Milliseconds between two checks in the background. */
const probeIntervalMs = 2000
const pruneIntervalMs = 60_000

/** A PostgreSQL database. Its statements work behind a pooler in transaction mode: none depends on session state. */
export class Postgres extends PostgresStatements implements Sql {
  readonly #pool: Pool
  readonly #log: CommitLog
  readonly #probe: Probe
  readonly #listener: Listener | undefined
  readonly #processes: ProcessList | undefined
  /** Milliseconds after which a statement without a response has failed. */
  readonly #limitMs: number
  #prunedAt = Date.now()
  #closed: Promise<void> | undefined

  private constructor(pool: Pool, options: PostgresOptions & Parts) {
    super(options.schema)
    this.#pool = pool
    this.#log = new CommitLog(options.schema)
    this.#listener = options.listener
    this.#processes = options.processes
    this.#limitMs = limitOf(options)
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
    const processes = options.isRestore ? undefined : new ProcessList(schema)
    await openDatabase({ ...options, processes, limitMs: timeoutMs })
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
    if (directUrl === undefined) return new Postgres(pool, { ...options, processes })
    const direct = await clientConfig({ url: directUrl, timeoutMs, name })
    const connect = async () => {
      const client = new pg.Client(direct)
      await client.connect()
      return client
    }
    const listener = new Listener({ connect, onError })
    return new Postgres(pool, { ...options, processes, listener })
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
  async query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
    return (await this.execute<Row>(text, values)).rows
  }

  protected async execute<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const { client, leftMs } = await acquire(this.#pool, this.#limitMs)
    try {
      const result = await client.query<Row>(limited(leftMs, text, values))
      client.release()
      return result
    } catch (error) {
      client.release(true)
      throw translateError(error)
    }
  }

  /**
   * Runs one read-write transaction (READ COMMITTED). If it throws, it had no effect, except with `OutcomeUnknownError`.
   * After a lost COMMIT answer the outcome is looked up for up to five seconds.
   */
  transaction<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    return runTransaction(this.#pool, writeTransaction(this.#pool, this.#log, this.#limitMs), run)
  }

  /** Runs a read-only transaction on one snapshot (REPEATABLE READ). */
  snapshot<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    return runTransaction(this.#pool, snapshotTransaction(this.schema, this.#limitMs), run)
  }

  /**
   * Calls the listener with each notification's payload, and with an empty payload whenever notifications may have been
   * lost. False without a direct connection: the caller must poll.
   */
  async listen(channel: string, listener: (payload: string) => void): Promise<boolean> {
    if (!/^[a-z_]+$/.test(channel)) throw new Error(`${channel} is not a channel name`)
    await this.#listener?.listen(channel, listener)
    return this.#listener !== undefined
  }

  /** What the probe last saw. */
  get isAvailable(): boolean {
    return this.#probe.isAvailable
  }

  get pool(): { total: number; idle: number; waiting: number } {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#pool
    return { total, idle, waiting }
  }

  /** Ends all connections, when their transactions have ended. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close() {
    await this.#probe.close()
    await this.#listener?.close()
    await this.#processes?.leave(this).catch(() => undefined)
    await this.#pool.end()
  }

  async #check() {
    const isPruneDue = Date.now() - this.#prunedAt >= pruneIntervalMs
    await this.query('select 1')
    // A database that cannot be written to still answers reads.
    await this.#processes?.beat(this).catch(() => undefined)
    if (!isPruneDue) return
    await this.query(this.#log.pruneStatement()).catch(() => undefined)
    this.#prunedAt = Date.now()
  }
}

const limitOf = ({ timeoutMs }: PostgresOptions) => Math.round(timeoutMs * statementShare)
