import { DatabaseUnavailableError, OutcomeUnknownError, Postgres, type PostgresOptions } from '../../src/index.ts'

export const schema = 'sample'
const migrations = { items: [`create table ${schema}.items (id int primary key)`] }

/** A database with one table, `items`. */
export async function openPostgres(url: string, options: Partial<PostgresOptions> = {}) {
  const postgres = await Postgres.open({
    url,
    maxConnections: 2,
    timeoutMs: 150_000,
    schema,
    migrations,
    onError: () => undefined,
    ...options,
  })
  return Object.assign(postgres, { [Symbol.asyncDispose]: () => postgres.close() })
}

/** Adds an item in a transaction. */
export const addItem = (postgres: Postgres, id: number) =>
  postgres.transaction(async (transaction) => {
    await transaction.query(`insert into ${schema}.items values ($1)`, [id])
    return id
  })

export async function isStored(postgres: Postgres, id: number) {
  const rows = await postgres.query(`select 1 from ${schema}.items where id = $1`, [id])
  return rows.length === 1
}

export type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** How a write ended for its client. @throws every other error. */
export async function outcomeOf(write: Promise<unknown>): Promise<Outcome> {
  try {
    await write
    return 'acknowledged'
  } catch (error) {
    if (error instanceof OutcomeUnknownError) return 'unknown'
    if (error instanceof DatabaseUnavailableError) return 'refused'
    throw error
  }
}
