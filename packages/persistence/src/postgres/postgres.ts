import type { Client, Pool } from 'pg'
import { BackgroundTask } from '../background-task.ts'
import type { Sql } from '../sql/sql.ts'
import {
  Connection,
  type ConnectionSettings,
  clientConfig,
  limited,
  type PostgresOptions,
  serverLimits,
  withClient,
} from './connections.ts'
import { migratePostgres } from './migrate-postgres.ts'
import { pruneCommits, runSnapshot, runTransaction, type TransactionOptions } from './transaction.ts'

/** Share of the time limit for statements; the rest is for sending the response. */
const statementShare = 0.95

/** Milliseconds between two checks in the background. */
const probeIntervalMs = 2000
const pruneIntervalMs = 60_000

/**
 * A PostgreSQL database. Works behind a transaction-mode pooler: no statement depends on session state. A statement
 * outside a transaction is a read or an idempotent write: if the connection is lost, it may have taken effect despite
 * `DatabaseUnavailableError`.
 */
export class Postgres extends Connection implements Sql {
  readonly #options: PostgresOptions
  readonly #probe: BackgroundTask
  readonly #transactions: TransactionOptions
  /** A time by the clock of the database, and when it was that, by the monotonic clock of this process. */
  #time = { ms: Date.now(), at: performance.now() }
  #prunedAt = Date.now()
  #listener: Listener | undefined
  #closed: Promise<void> | undefined

  private constructor(pool: Pool, options: PostgresOptions) {
    const { schema } = options
    const limitMs = limitOf(options)
    super(schema, (text, values) =>
      withClient(pool, limitMs, (client, leftMs) => client.query(limited(leftMs, text, values))),
    )
    this.#options = options
    this.#transactions = { pool, schema, limitMs }
    this.#probe = new BackgroundTask({ run: () => this.#check(), onError: options.onError })
  }

  /**
   * Applies the migrations and opens the pool. Waits up to 30 seconds for a database that is starting.
   * @throws {DataDirError} if the database is unreachable or unusable.
   */
  static async open(options: PostgresOptions): Promise<Postgres> {
    const { url, directUrl, schema, maxConnections, onError } = options
    const timeoutMs = limitOf(options)
    const { default: pg } = await import('pg')
    await migratePostgres(options, timeoutMs)
    const config = await clientConfig({ url, timeoutMs, name: schema })
    const limits = directUrl === undefined ? await serverLimits(config) : {}
    const pool = new pg.Pool({
      ...config,
      ...limits,
      max: maxConnections,
      idleTimeoutMillis: 30_000,
    })
    pool.on('error', (error) => {
      Reflect.deleteProperty(error, 'client') // It has all connection settings: keep them out of logs.
      onError(error)
    })
    // A connection that fails in use rejects its query and also emits the error, which would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined))
    const postgres = new Postgres(pool, options)
    await postgres.#probe.start(probeIntervalMs)
    return postgres
  }

  /** Opens the database for a backup or restore, with a statement limit of one minute. @throws as `open` */
  static openForRestore(options: Omit<PostgresOptions, 'timeoutMs' | 'isRestore' | 'onError'>): Promise<Postgres> {
    // A failed statement rejects by itself.
    return Postgres.open({ ...options, timeoutMs: 60_000, isRestore: true, onError: () => undefined })
  }

  /**
   * Runs one read-write transaction (READ COMMITTED). If it throws, it had no effect, except with `OutcomeUnknownError`.
   * If the response to COMMIT is lost, the outcome is looked up for up to five seconds.
   */
  transaction<T>(run: (transaction: Connection) => Promise<T>): Promise<T> {
    return runTransaction(this.#transactions, run)
  }

  /** Runs a read-only transaction (REPEATABLE READ). */
  snapshot<T>(run: (transaction: Connection) => Promise<T>): Promise<T> {
    return runSnapshot(this.#transactions, run)
  }

  /**
   * Calls the listener with the payload of each notification, and with an empty payload after possible losses. Call it
   * once.
   * @returns false without a direct URL: the caller must poll.
   */
  listen(channel: string, onNotification: (payload: string) => void): boolean {
    const { directUrl: url, schema: name, onError } = this.#options
    if (url === undefined) return false
    const connection = { url, timeoutMs: limitOf(this.#options), name }
    this.#listener = new Listener({ connection, channel, onNotification, onError })
    return true
  }

  /** Milliseconds since 1970 by the clock of the database, which replicas have in common, as last seen by the probe. */
  readonly now = (): number => Math.floor(this.#time.ms + performance.now() - this.#time.at)

  get isAvailable(): boolean {
    return this.#probe.isAvailable
  }

  get pool() {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#transactions.pool
    return { total, idle, waiting }
  }

  /** Ends all connections once their transactions have ended. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close() {
    await this.#probe.close()
    await this.#listener?.close()
    await this.#transactions.pool.end()
  }

  async #check() {
    const askedAt = performance.now()
    const [row] = await this.query<{ ms: number }>('select (extract(epoch from clock_timestamp()) * 1000)::bigint ms')
    const at = performance.now()
    // The latency of the response explains a small difference.
    if (row && Math.abs(row.ms - this.now()) > at - askedAt) this.#time = { ms: row.ms, at }
    if (Date.now() - this.#prunedAt < pruneIntervalMs) return
    // A failed write does not count: a read-only database still serves reads.
    await this.run(pruneCommits).catch(() => undefined)
    this.#prunedAt = Date.now()
  }
}

const limitOf = ({ timeoutMs }: PostgresOptions) => Math.round(timeoutMs * statementShare)

interface ListenerOptions {
  connection: ConnectionSettings
  channel: string
  onNotification: (payload: string) => void
  onError: (error: unknown) => void
}

/**
 * LISTEN on a dedicated connection, which is checked every two seconds and replaced when it is lost. Notifications
 * during an outage are lost, so after each connect `onNotification` is called once with an empty payload.
 */
class Listener {
  readonly #options: ListenerOptions
  readonly #checking: BackgroundTask
  #client: Client | undefined
  #isClosed = false

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#checking = new BackgroundTask({ run: () => this.#check(), onError: options.onError })
    void this.#checking.start(probeIntervalMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const checked = this.#checking.close()
    await this.#drop() // Ends its check.
    await checked
    await this.#drop() // The last check may have connected.
  }

  async #check() {
    try {
      if (this.#client) await this.#client.query('select 1')
      else await this.#connect()
    } catch (error) {
      if (this.#isClosed) return
      void this.#drop()
      throw error
    }
  }

  async #connect() {
    const { connection, channel, onNotification, onError } = this.#options
    const { default: pg } = await import('pg')
    const client = new pg.Client(await clientConfig(connection))
    await client.connect()
    this.#client = client
    client.on('error', onError)
    client.once('end', () => {
      if (this.#client === client) this.#client = undefined
    })
    client.on('notification', ({ payload = '' }) => onNotification(payload))
    await client.query(`listen ${channel}`)
    onNotification('')
  }

  async #drop() {
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }
}
