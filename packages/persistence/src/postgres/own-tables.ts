import { name, sql } from '../sql/sql.ts'
import type { Connection } from './connections.ts'

// Tables of this package in the schema of a service: commits, processes, and an incomplete restore.

const [commits, processes] = [name('commits'), name('processes')]

/** Table with a row while a restore is incomplete. */
export const restores = name('restore')

/** Creates these tables. */
export const ownTables = sql`
  create table if not exists ${commits} (
    id uuid primary key,
    committed_at timestamptz not null default now(),
    is_fence boolean not null default false
  );
  create table ${processes} (id uuid primary key, seen_at timestamptz not null);
  create table ${restores} (backup text primary key, rows_done jsonb not null default '{}')`

/**
 * SQL that records the transaction `id`, a UUID, and commits; if the insert fails, COMMIT is not run. If the response to
 * COMMIT is lost, the row shows whether the transaction took effect. `pg_xact_status` is unsafe: after a crash PostgreSQL
 * reuses transaction ids that were not yet on disk, so it could report the outcome of another transaction.
 */
export const commitStatement = (schema: string, id: string) =>
  `insert into ${schema}.commits (id) values ('${id}'); commit`

/**
 * Whether the transaction took effect; waits while it is in progress. If not, this inserts its row, so that a late commit
 * fails by the unique key: the result is final.
 */
export async function isCommitted(connection: Connection, id: string): Promise<boolean> {
  const inserted = await connection.run(
    sql`insert into ${commits} (id, is_fence) values (${id}, true) on conflict (id) do nothing`,
  )
  if (inserted > 0) return false
  const row = await connection.get<{ is_fence: boolean }>(
    sql`select is_fence from ${commits} where id = ${id}`,
  )
  return row?.is_fence === false
}

/** Removes commit records after ten minutes. Look-ups start within seconds. */
export const pruneCommits = sql`delete from ${commits} where committed_at < now() - interval '10 minutes'`

/**
 * Heartbeat: records every few seconds that a process uses the schema, so that no restore begins under a running service.
 * `pg_stat_activity` is no substitute: connections of a pooler outlive processes and belong to none.
 */
export const recordProcess = (connection: Connection, id: string) =>
  connection.run(sql`insert into ${processes} (id, seen_at) values (${id}, clock_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at`)

/** Removes the record of a process, and stale records. */
export const removeProcess = (connection: Connection, id: string) =>
  connection.run(
    sql`delete from ${processes} where id = ${id} or seen_at < now() - interval '1 day'`,
  )

/** Whether any process was seen in the last ten seconds. */
export const isInUse = async (connection: Connection): Promise<boolean> =>
  (await connection.get(sql`select 1 from ${processes}
    where seen_at > clock_timestamp() - interval '10 seconds' limit 1`)) !== undefined
