import type { Connection } from './connections.ts'

// Tables of this package in the schema of a service: commits, processes, and an incomplete restore.

const commits = (schema: string) => `${schema}.commits`
const processes = (schema: string) => `${schema}.processes`

/** Table with a row while a restore is incomplete. */
export const restoreTable = (schema: string) => `${schema}.restore`

/** SQL that creates these tables. */
export const ownTables = (schema: string) => `
  create table if not exists ${commits(schema)} (
    id uuid primary key,
    committed_at timestamptz not null default now(),
    is_fence boolean not null default false
  );
  create table ${processes(schema)} (id uuid primary key, seen_at timestamptz not null);
  create table ${restoreTable(schema)} (backup text primary key, rows_done jsonb not null default '{}')`

/**
 * SQL that records the transaction `id`, a UUID, and commits; if the insert fails, COMMIT is not run. If the response to
 * COMMIT is lost, the row shows whether the transaction took effect. `pg_xact_status` is unsafe: after a crash PostgreSQL
 * reuses transaction ids that were not yet on disk, so it could report the outcome of another transaction.
 */
export const commitStatement = (schema: string, id: string) =>
  `insert into ${commits(schema)} (id) values ('${id}'); commit`

/**
 * Whether the transaction took effect; waits while it is in progress. If not, this inserts its row, so that a late commit
 * fails by the unique key: the result is final.
 */
export async function isCommitted(connection: Connection, id: string): Promise<boolean> {
  const table = commits(connection.schema)
  const inserted = await connection.query(
    `insert into ${table} (id, is_fence) values ($1, true) on conflict (id) do nothing returning id`,
    [id],
  )
  if (inserted.length > 0) return false
  const [row] = await connection.query<{ is_fence: boolean }>(
    `select is_fence from ${table} where id = $1`,
    [id],
  )
  return row !== undefined && !row.is_fence
}

/** SQL that removes commit records after ten minutes. Look-ups start within seconds. */
export const pruneStatement = (schema: string) =>
  `delete from ${commits(schema)} where committed_at < now() - interval '10 minutes'`

/**
 * Heartbeat: records every few seconds that a process uses the schema, so that no restore begins under a running service.
 * `pg_stat_activity` is no substitute: connections of a pooler outlive processes and belong to none.
 */
export async function recordProcess(connection: Connection, id: string): Promise<void> {
  await connection.query(
    `insert into ${processes(connection.schema)} (id, seen_at) values ($1, clock_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at`,
    [id],
  )
}

/** Removes the record of a process, and stale records. */
export async function removeProcess(connection: Connection, id: string): Promise<void> {
  await connection.query(
    `delete from ${processes(connection.schema)} where id = $1 or seen_at < now() - interval '1 day'`,
    [id],
  )
}

/** Whether any process was seen in the last ten seconds. */
export async function isInUse(connection: Connection): Promise<boolean> {
  const alive = await connection.query(
    `select 1 from ${processes(connection.schema)}
    where seen_at > clock_timestamp() - interval '10 seconds' limit 1`,
  )
  return alive.length > 0
}
