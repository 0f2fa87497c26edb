import type { ClientBase, ClientConfig, QueryResultRow } from 'pg'
import { translateError } from './postgres-errors.ts'

/** Milliseconds in which a connection must be made. */
export const connectTimeoutMs = 3000

/** One connection in use, or a transaction on it. Failures are thrown as `translateError` says. */
export interface Connection {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

interface ConnectionSettings {
  url: string
  /** Milliseconds after which a statement without a response counts as failed. */
  timeoutMs: number
  /** Shown by PostgreSQL in pg_stat_activity. */
  name: string
}

/**
 * The settings of every connection. Time limits are kept by the client: as startup parameters, PgBouncer would refuse
 * them.
 */
export async function clientConfig({ url, timeoutMs, name }: ConnectionSettings) {
  const { types } = (await import('pg')).default
  const parsers = new Map<number, (text: string) => unknown>([
    [types.builtins.INT8, Number],
    [types.builtins.NUMERIC, Number],
  ])
  return {
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      // pg's own signature has one overload per format.
      getTypeParser: ((oid: number, format?: 'text') =>
        parsers.get(oid) ?? types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  } satisfies ClientConfig
}

/** A pg client as a `Connection`. */
export const connectionOf = (client: Pick<ClientBase, 'query'>): Connection => ({
  async query<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    try {
      return (await client.query<Row>(text, values)).rows
    } catch (error) {
      throw translateError(error)
    }
  },
})
