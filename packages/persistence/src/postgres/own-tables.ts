import type { Connection } from './connections.ts'

// What this package records in the schema of a service: commits, processes, and a restore that is not complete.

const commits = (schema: string) => `${schema}.commits`
const processes = (schema: string) => `${schema}.processes`

/** Records a restore that is not complete; empty otherwise. */
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
 * SQL that records the transaction `id`, a UUID, and commits it; if the first statement fails, the second is not run. After a
 * lost COMMIT answer the row tells whether the transaction took effect. `pg_xact_status` would not do: after a crash PostgreSQL
 * assigns transaction ids again that it had not yet written to disk, so another transaction's outcome would be reported.
 */
export const commitStatement = (schema: string, id: string) =>
  `insert into ${commits(schema)} (id) values ('${id}'); commit`

/**
 * Whether the transaction took effect. If it did not, it never will: its row is inserted here, so its own COMMIT would
 * fail. Waits for a transaction in progress.
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

/** SQL that removes the records of commits that nobody looks up any more: that starts within seconds. */
export const pruneStatement = (schema: string) =>
  `delete from ${commits(schema)} where committed_at < now() - interval '10 minutes'`

/**
 * Records that a process uses the schema, every few seconds: a restore must not begin under a running service. The
 * connections of the server would not do, since those of a pooler outlive processes and have no process of their own.
 */
export async function recordProcess(connection: Connection, id: string): Promise<void> {
  await connection.query(
    `insert into ${processes(connection.schema)} (id, seen_at) values ($1, clock_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at`,
    [id],
  )
}

/** Removes a process, and others that are long gone. */
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
