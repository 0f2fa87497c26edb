import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { DatabaseUnavailableError, isOutcomeCertain, OutcomeUnknownError, translateError } from '../errors.ts'
import { name, sql } from '../sql/sql.ts'
import { acquire, type Connection, connectionOf, limited, withClient } from './connections.ts'

/** Maximum milliseconds to look up the outcome of a transaction whose response to COMMIT was lost. */
const lookupMs = 5000
const lookupPauseMs = 100

export interface TransactionOptions {
  pool: Pool
  schema: string
  /** Milliseconds in which a connection and the response to BEGIN must arrive. */
  limitMs: number
}

/**
 * As `Postgres.transaction`. The server enforces the time limit, too, for statements and idle time, so that an abandoned
 * transaction releases its locks.
 */
export function runTransaction<T>(
  options: TransactionOptions,
  run: (transaction: Connection) => Promise<T>,
): Promise<T> {
  const { schema, limitMs } = options
  const id = randomUUID()
  return attempt(options, run, {
    begin: `begin isolation level read committed; set local statement_timeout = ${limitMs}; set local idle_in_transaction_session_timeout = ${limitMs}`,
    commit: commitStatement(schema, id),
    lookUp: (cause) => lookUp(options, id, cause),
  })
}

export const runSnapshot = <T>(options: TransactionOptions, run: (transaction: Connection) => Promise<T>): Promise<T> =>
  attempt(options, run, {
    begin: 'begin transaction isolation level repeatable read, read only',
    commit: 'commit',
    lookUp: async () => true, // Nothing was written.
  })

interface Frame {
  begin: string
  commit: string
  /** Whether the transaction took effect, if the response to COMMIT was lost. @throws {OutcomeUnknownError} */
  lookUp: (cause: unknown) => Promise<boolean>
}

async function attempt<T>(
  { pool, schema, limitMs }: TransactionOptions,
  run: (transaction: Connection) => Promise<T>,
  { begin, commit, lookUp: isDone }: Frame,
): Promise<T> {
  const { client, leftMs } = await acquire(pool, limitMs)
  let value: T
  try {
    await client.query(limited(leftMs, begin))
    value = await run(connectionOf(client, schema))
  } catch (error) {
    throw await abandon(client, error)
  }
  try {
    await client.query(commit)
  } catch (error) {
    if (isOutcomeCertain(error)) throw await abandon(client, error)
    client.release(true)
    if (await isDone(error)) return value
    throw translateError(error)
  }
  client.release()
  return value
}

/** Rolls back. Closes a connection that does not respond, which also rolls back. @returns the translated error. */
async function abandon(client: PoolClient, error: unknown): Promise<unknown> {
  const failure = translateError(error)
  const isLost = failure instanceof DatabaseUnavailableError
  const isUsable = !isLost && (await client.query('rollback').catch(() => undefined)) !== undefined
  client.release(!isUsable)
  return failure
}

async function lookUp({ pool, schema }: TransactionOptions, id: string, cause: unknown): Promise<boolean> {
  const deadline = AbortSignal.timeout(lookupMs)
  const ask = () => withClient(pool, lookupMs, (client) => isCommitted(connectionOf(client, schema), id))
  const attempts = async () => {
    while (!deadline.aborted) {
      const found = await ask().catch(() => undefined)
      if (found !== undefined) return found
      await wait(lookupPauseMs)
    }
    return undefined
  }
  const found = await Promise.race([attempts(), once(deadline, 'abort').then(() => undefined)])
  if (found === undefined) throw new OutcomeUnknownError(cause)
  return found
}

const commits = name('commits')

/**
 * SQL that records the transaction `id`, a UUID, and commits; if the insert fails, COMMIT is not run. If the response to
 * COMMIT is lost, the row shows whether the transaction took effect. `pg_xact_status` is unsafe: after a crash PostgreSQL
 * reuses transaction ids that were not yet on disk, so it could report the outcome of another transaction.
 */
const commitStatement = (schema: string, id: string) => `insert into ${schema}.commits (id) values ('${id}'); commit`

/**
 * Whether the transaction took effect; waits while it is in progress. If not, this inserts its row, so that a late commit
 * fails by the unique key: the result is final.
 */
async function isCommitted(connection: Connection, id: string): Promise<boolean> {
  const inserted = await connection.run(
    sql`insert into ${commits} (id, is_fence) values (${id}, true) on conflict (id) do nothing`,
  )
  if (inserted > 0) return false
  const row = await connection.get<{ is_fence: boolean }>(sql`select is_fence from ${commits} where id = ${id}`)
  return row?.is_fence === false
}

/** Removes commit records after ten minutes. Look-ups start within seconds. */
export const pruneCommits = sql`delete from ${commits} where committed_at < now() - interval '10 minutes'`
