import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Pool, PoolClient, QueryConfig } from 'pg'
import { DatabaseUnavailableError, OutcomeUnknownError } from '../errors.ts'
import type { CommitLog } from './commit-log.ts'
import { acquire, ClientConnection, type Connection, limited } from './connections.ts'
import { isOutcomeCertain, translateError } from './postgres-errors.ts'

export type Transaction = Connection

/** Milliseconds for which a transaction with a lost COMMIT answer is looked up. */
const lookupMs = 5000
const lookupPauseMs = 100

interface TransactionSettings {
  schema: string
  /** Milliseconds in which a connection and the response to BEGIN must arrive. */
  limitMs: number
  begin: string
  commit: string
  /** After a lost COMMIT answer: whether the transaction took effect. @throws {OutcomeUnknownError} */
  lookUp: (cause: unknown) => Promise<boolean>
}

/** How a transaction ended. The connection is usable again if `isClean`. */
type Outcome<T> =
  | { kind: 'committed'; value: T; isClean: true }
  | { kind: 'failed'; error: unknown; isClean: boolean }
  | { kind: 'lost'; value: T; error: unknown; isClean: false }

/**
 * A read-write transaction (READ COMMITTED). The time limit holds on the server too, for its statements and for its
 * pauses, so that an abandoned transaction releases its locks.
 */
export const writeTransaction = (
  pool: Pool,
  log: CommitLog,
  limitMs: number,
): TransactionSettings => {
  const id = randomUUID()
  const { schema } = log
  const isCommitted = () => withConnection(pool, schema, (one) => log.isCommitted(one, id))
  return {
    schema,
    limitMs,
    begin: `begin; set local statement_timeout = ${limitMs}; set local idle_in_transaction_session_timeout = ${limitMs}`,
    commit: log.commitStatement(id),
    lookUp: (cause) => lookUp(isCommitted, cause),
  }
}

/** A read-only transaction on one snapshot (REPEATABLE READ). */
export const snapshotTransaction = (schema: string, limitMs: number): TransactionSettings => ({
  schema,
  limitMs,
  begin: 'begin transaction isolation level repeatable read, read only',
  commit: 'commit',
  lookUp: async () => true, // Nothing was written.
})

/** Runs one transaction. If this throws, the transaction had no effect, except with `OutcomeUnknownError`. */
export async function runTransaction<T>(
  pool: Pool,
  settings: TransactionSettings,
  run: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const { client, leftMs } = await acquire(pool, settings.limitMs)
  const { begin, commit, schema } = settings
  const connection = new ClientConnection(client, schema)
  const statements = { begin: limited(leftMs, begin), commit }
  const outcome = await attempt(client, statements, () => run(connection))
  client.release(!outcome.isClean)
  if (outcome.kind === 'committed') return outcome.value
  if (outcome.kind === 'lost' && (await settings.lookUp(outcome.error))) return outcome.value
  throw translateError(outcome.error)
}

async function attempt<T>(
  client: PoolClient,
  { begin, commit }: { begin: QueryConfig; commit: string },
  run: () => Promise<T>,
): Promise<Outcome<T>> {
  let value: T
  try {
    await client.query(begin)
    value = await run()
  } catch (error) {
    return { kind: 'failed', error, isClean: await rollBack(client, error) }
  }
  try {
    await client.query(commit)
    return { kind: 'committed', value, isClean: true }
  } catch (error) {
    return isOutcomeCertain(error)
      ? { kind: 'failed', error, isClean: await rollBack(client, error) }
      : { kind: 'lost', value, error, isClean: false }
  }
}

/** Whether the connection can be used again. One that does not answer is closed, which rolls back too. */
async function rollBack(client: PoolClient, error: unknown): Promise<boolean> {
  if (translateError(error) instanceof DatabaseUnavailableError) return false
  try {
    await client.query('rollback')
    return true
  } catch {
    return false
  }
}

/** Runs a task on a connection of the pool, which is closed if the task throws. */
async function withConnection<T>(
  pool: Pool,
  schema: string,
  task: (connection: Connection) => Promise<T>,
) {
  const client = await pool.connect()
  let isClean = false
  try {
    const result = await task(new ClientConnection(client, schema))
    isClean = true
    return result
  } finally {
    client.release(!isClean)
  }
}

async function lookUp(isCommitted: () => Promise<boolean>, cause: unknown): Promise<boolean> {
  const deadline = AbortSignal.timeout(lookupMs)
  const attempts = async () => {
    while (!deadline.aborted) {
      const found = await isCommitted().catch(() => undefined)
      if (found !== undefined) return found
      await wait(lookupPauseMs)
    }
    return undefined
  }
  const found = await Promise.race([attempts(), once(deadline, 'abort').then(() => undefined)])
  if (found === undefined) throw new OutcomeUnknownError(cause)
  return found
}
