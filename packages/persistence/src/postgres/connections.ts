import { setTimeout as wait } from 'node:timers/promises'
import type { ClientBase, ClientConfig, Pool, PoolClient, QueryResult, QueryResultRow } from 'pg'
import { codeOf, translateError } from '../errors.ts'
import { type Migrations, render, type SqlTransaction, type Statement } from '../sql/sql.ts'

export interface PostgresOptions {
  url: string
  /** URL that bypasses a transaction-mode pooler, for LISTEN and migrations. */
  directUrl?: string | undefined
  maxConnections: number
  /** Milliseconds within which a request fails if the database does not respond. */
  timeoutMs: number
  /** Created if it is missing. */
  schema: string
  migrations: Migrations
  /** For a backup or a restore: permits an unfinished restore. */
  isRestore?: boolean | undefined
  /** Receives errors of idle connections, and failures that the probe finds. */
  onError: (error: unknown) => void
}

/** Maximum milliseconds to get a connection, new or from the pool: a part of the time limit of a statement. */
const connectLimit = (timeoutMs: number) => Math.min(timeoutMs, Math.max(3000, 0.6 * timeoutMs))

export interface ConnectionSettings {
  url: string
  /** Milliseconds after which a statement without a response counts as failed. */
  timeoutMs: number
  /** Shown by PostgreSQL in pg_stat_activity. */
  name: string
}

export async function clientConfig({ url, timeoutMs, name }: ConnectionSettings) {
  const { types } = (await import('pg')).default
  const numbers: number[] = [types.builtins.INT8, types.builtins.NUMERIC]
  return {
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis: connectLimit(timeoutMs),
    query_timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      // pg's own signature has one overload per format.
      getTypeParser: ((oid: number, format?: 'text') =>
        numbers.includes(oid) ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  } satisfies ClientConfig
}

/**
 * Server-side time limit (`statement_timeout`), so that PostgreSQL ends abandoned statements, and the isolation that
 * statements expect. Empty behind a pooler that rejects the settings: there only transactions have both.
 */
export async function serverLimits(config: ClientConfig): Promise<Pick<ClientConfig, 'statement_timeout' | 'options'>> {
  const { default: pg } = await import('pg')
  const options = '-c default_transaction_isolation=read\\ committed'
  const limits = { statement_timeout: config.query_timeout ?? 0, options }
  const client = new pg.Client({ ...config, ...limits })
  client.on('error', () => undefined) // It rejects connect(), too.
  try {
    await client.connect()
    return limits
  } catch (error) {
    return error instanceof Error && /unsupported startup parameter/.test(error.message) ? {} : limits
  } finally {
    client.end().catch(() => undefined)
  }
}

/** A statement with a time limit of its own, in milliseconds. */
export const limited = (limitMs: number, text: string, values?: unknown[]) => ({
  text,
  query_timeout: limitMs,
  ...(values && { values }),
})

/**
 * Gets a connection from the pool, and the rest of the time limit for its first statement. The wait for the connection
 * counts: a database that accepts connections but never responds, as behind a pooler, is detected within one limit.
 */
export async function acquire(pool: ConnectingPool, limitMs: number): Promise<{ client: PoolClient; leftMs: number }> {
  const startedAt = performance.now()
  const lastAt = startedAt + limitMs - connectLimit(limitMs)
  const client = await connect(pool, lastAt).catch((error) => {
    throw translateError(error)
  })
  const leftMs = Math.max(1, Math.floor(limitMs - (performance.now() - startedAt)))
  return { client, leftMs }
}

const refusedPauseMs = 100

type ConnectingPool = Pick<Pool, 'connect' | 'options' | 'totalCount'>

// While the server has no connection left (too_many_connections), waits for those that the pool has, or asks again. Each
// attempt costs the server a process: the place in the pool stays empty for a second, except the last.
async function connect(pool: ConnectingPool, lastAt: number): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    if (codeOf(error) !== '53300' || performance.now() > lastAt) throw error
    if (pool.options.max > 1) {
      pool.options.max -= 1
      setTimeout(() => {
        pool.options.max += 1
      }, 1000).unref()
    }
    if (pool.totalCount === 0) await wait(refusedPauseMs) // An empty pool wakes nobody.
    return connect(pool, lastAt)
  }
}

/** Runs a task on a pooled connection with the rest of the time limit. If the task throws, the connection is closed. */
export async function withClient<T>(
  pool: Pool,
  limitMs: number,
  task: (client: PoolClient, leftMs: number) => Promise<T>,
): Promise<T> {
  const { client, leftMs } = await acquire(pool, limitMs)
  try {
    const result = await task(client, leftMs)
    client.release()
    return result
  } catch (error) {
    client.release(true)
    throw translateError(error)
  }
}

type Execute = (text: string, values?: unknown[]) => Promise<QueryResult>

/** Renders statements for the schema, and runs them by `execute`. Errors are translated by `translateError`. */
export class Connection implements SqlTransaction {
  readonly dialect = 'postgres'
  readonly schema: string
  readonly #execute: Execute

  constructor(schema: string, execute: Execute) {
    this.schema = schema
    this.#execute = execute
  }

  async query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
    return (await this.#run<Row>(text, values)).rows
  }

  async all<Row extends object>(statement: Statement): Promise<Row[]> {
    const { text, values } = render(statement, this)
    return (await this.#run<Row & QueryResultRow>(text, values)).rows
  }

  async get<Row extends object>(statement: Statement): Promise<Row | undefined> {
    return (await this.all<Row>(statement))[0]
  }

  async run(statement: Statement): Promise<number> {
    const { text, values } = render(statement, this)
    return (await this.#run(text, values)).rowCount ?? 0
  }

  async #run<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<Row>> {
    try {
      return await this.#execute(text, values)
    } catch (error) {
      throw translateError(error)
    }
  }
}

/** One client connection, or a transaction on it. */
export const connectionOf = (client: Pick<ClientBase, 'query'>, schema: string): Connection =>
  new Connection(schema, (text, values) => client.query(text, values))
