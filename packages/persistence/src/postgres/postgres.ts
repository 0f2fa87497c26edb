import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client, Pool, QueryResultRow } from 'pg'
import { BackgroundTask } from '../background-task.ts'
import type { Sql } from '../sql/sql.ts'
import { Connection, clientConfig, limited, type PostgresOptions, serverLimits, withClient } from './connections.ts'
import { migratePostgres, recordProcess, removeProcess } from './migrate-postgres.ts'
import { pruneCommits, runSnapshot, runTransaction, type TransactionOptions } from './transaction.ts'

interface Parts {
  pool: Pool
  /** Absent without a direct URL. */
  listener: Listener | undefined
  /** Absent for a backup or a restore. */
  processId: string | undefined
}

/** Share of the time limit for statements; the rest is for sending the response. */
const statementShare = 0.95

/** Milliseconds between two checks in the background. */
const probeIntervalMs = 2000
const pruneIntervalMs = 60_000

/** A PostgreSQL database. Works behind a transaction-mode pooler: no statement depends on session state. */
export class Postgres extends Connection implements Sql {
  readonly #parts: Parts
  readonly #probe: BackgroundTask
  readonly #transactions: TransactionOptions
  /** A time by the clock of the database, and when it was that, by the monotonic clock of this process. */
  #time = { ms: Date.now(), at: performance.now() }
  #prunedAt = Date.now()
  #closed: Promise<void> | undefined

  private constructor(parts: Parts, options: PostgresOptions) {
    super(options.schema)
    this.#parts = parts
    this.#transactions = { pool: parts.pool, schema: options.schema, limitMs: limitOf(options) }
    this.#probe = new BackgroundTask({ run: () => this.#check(), onError: options.onError })
  }

  /**
   * Applies the migrations and opens the pool. Waits up to 30 seconds for a database that is starting.
   * @throws {DatabaseRefusedError} if the database is unreachable or unusable.
   */
  static async open(options: PostgresOptions): Promise<Postgres> {
    const { url, directUrl, schema, maxConnections, onError } = options
    const timeoutMs = limitOf(options)
    if (!/^[a-z_]+$/.test(schema)) throw new Error(`${schema} is not a schema name`)
    const name = options.isRestore ? `${schema} maintenance` : schema
    const { default: pg } = await import('pg')
    const processId = options.isRestore ? undefined : randomUUID()
    await migratePostgres(options, processId, timeoutMs)
    const config = await clientConfig({ url, timeoutMs, name })
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
    const direct = directUrl && (await clientConfig({ url: directUrl, timeoutMs, name }))
    const connect = async () => {
      const client = new pg.Client(direct)
      await client.connect()
      return client
    }
    const listener = direct ? new Listener({ connect, onError }) : undefined
    const postgres = new Postgres({ pool, listener, processId }, options)
    await postgres.#probe.start(probeIntervalMs)
    return postgres
  }

  /** Opens the database for a backup or restore, with a statement limit of one minute. @throws as `open` */
  static openForRestore(options: Omit<PostgresOptions, 'timeoutMs' | 'isRestore' | 'onError'>): Promise<Postgres> {
    // A failed statement rejects by itself.
    return Postgres.open({ ...options, timeoutMs: 60_000, isRestore: true, onError: () => undefined })
  }

  /**
   * Runs one statement: a read or an idempotent write. If the connection is lost, the write may have taken effect despite
   * `DatabaseUnavailableError`.
   */
  protected execute<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const { pool, limitMs } = this.#transactions
    return withClient(pool, limitMs, (client, leftMs) => client.query<Row>(limited(leftMs, text, values)))
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
   * Calls the listener with the payload of each notification, and with an empty payload after possible losses.
   * @returns false without a direct URL: the caller must poll.
   */
  async listen(channel: string, listener: (payload: string) => void): Promise<boolean> {
    if (!/^[a-z_]+$/.test(channel)) throw new Error(`${channel} is not a channel name`)
    await this.#parts.listener?.listen(channel, listener)
    return this.#parts.listener !== undefined
  }

  /** Milliseconds since 1970 by the clock of the database, which replicas have in common, as last seen by the probe. */
  readonly now = (): number => Math.floor(this.#time.ms + performance.now() - this.#time.at)

  get isAvailable(): boolean {
    return this.#probe.isAvailable
  }

  get pool() {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#parts.pool
    return { total, idle, waiting }
  }

  /** Ends all connections once their transactions have ended. */
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
    await this.#readTime()
    // A failed write does not count: a read-only database still serves reads.
    if (processId !== undefined) await recordProcess(this, processId).catch(() => undefined)
    if (!isPruneDue) return
    await this.run(pruneCommits).catch(() => undefined)
    this.#prunedAt = Date.now()
  }

  async #readTime() {
    const askedAt = performance.now()
    const [row] = await this.query<{ ms: number }>('select (extract(epoch from clock_timestamp()) * 1000)::bigint ms')
    const at = performance.now()
    // The way of the answer explains a small difference.
    if (row && Math.abs(row.ms - this.now()) > at - askedAt) this.#time = { ms: row.ms, at }
  }
}

const limitOf = ({ timeoutMs }: PostgresOptions) => Math.round(timeoutMs * statementShare)

const reconnectMs = 1000
/** Milliseconds between two checks that the connection is alive. */
const checkIntervalMs = 10_000

/**
 * LISTEN on a dedicated connection, with reconnects. Notifications during an outage are lost, so after each connect every
 * listener is called once with an empty payload.
 */
class Listener {
  readonly #options: { connect: () => Promise<Client>; onError: (error: unknown) => void }
  readonly #listeners = new Map<string, Set<(payload: string) => void>>()
  #client: Client | undefined
  #running: Promise<void> | undefined
  #statement: Promise<unknown> = Promise.resolve()
  readonly #closed = new AbortController()

  constructor(options: { connect: () => Promise<Client>; onError: (error: unknown) => void }) {
    this.#options = options
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<void> {
    const listeners = this.#listeners.get(channel) ?? new Set()
    this.#listeners.set(channel, listeners.add(listener))
    if (this.#client) await this.#run(this.#client, `listen ${channel}`).catch(this.#options.onError)
    else this.#running ??= this.#keepConnected()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#client?.end().catch(() => undefined)
    await this.#running
  }

  async #keepConnected() {
    while (!this.#closed.signal.aborted) {
      try {
        await this.#connected()
      } catch (error) {
        this.#options.onError(error)
      }
      this.#client = undefined
      await wait(reconnectMs, undefined, { signal: this.#closed.signal }).catch(() => undefined)
    }
  }

  /** Resolves when the connection has ended. */
  async #connected() {
    const client = await this.#options.connect()
    const ended = Promise.withResolvers<unknown>()
    let check: NodeJS.Timeout | undefined
    client.once('end', () => ended.resolve(undefined))
    client.on('error', (error) => {
      this.#options.onError(error)
      ended.resolve(error)
    })
    try {
      client.on('notification', ({ channel, payload = '' }) => this.#dispatch(channel, payload))
      for (const channel of this.#listeners.keys()) await this.#run(client, `listen ${channel}`)
      this.#client = client
      for (const channel of this.#listeners.keys()) this.#dispatch(channel, '')
      if (this.#closed.signal.aborted) return
      check = setInterval(() => this.#run(client, 'select 1').catch(ended.resolve), checkIntervalMs)
      await ended.promise
    } finally {
      clearInterval(check)
      client.end().catch(() => undefined)
    }
  }

  // After earlier ones: pg warns of statements that wait in its own queue, and will refuse them.
  #run(client: Client, statement: string): Promise<unknown> {
    this.#statement = this.#statement.catch(() => undefined).then(() => client.query(statement))
    return this.#statement
  }

  #dispatch(channel: string, payload: string) {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload)
  }
}
