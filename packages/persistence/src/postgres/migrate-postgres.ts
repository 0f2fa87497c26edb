import { CommitLog } from './commit-log.ts'
import type { Connection } from './connections.ts'
import { DatabaseRefusedError } from './postgres-errors.ts'

/** Oldest major version of PostgreSQL that is supported. */
const minVersion = 15

/**
 * Brings a schema up to date within one transaction that the caller has begun: creates it, and applies the migrations (SQL,
 * in order) that it has not seen. Processes that start at the same time wait for each other.
 * @throws {DatabaseRefusedError} when a newer version of the service has applied more, or PostgreSQL is too old.
 */
export async function migratePostgres(
  connection: Connection,
  { schema, migrations }: { schema: string; migrations: string[] },
): Promise<void> {
  await requireVersion(connection)
  await connection.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `migrate ${schema}`,
  ])
  const applied = (await isCreated(connection, schema))
    ? await readVersion(connection, schema)
    : await createSchema(connection, schema)
  if (applied > migrations.length) {
    throw new DatabaseRefusedError(
      `The schema ${schema} in DATABASE_URL is of a newer version of this service: start that version, or restore a backup made by this one.`,
    )
  }
  if (applied === migrations.length) return
  for (const sql of migrations.slice(applied)) await connection.query(sql)
  await connection.query(`update ${schema}.migrations set applied = $1`, [migrations.length])
}

async function requireVersion(connection: Connection) {
  const [row] = await connection.query<{ version: number }>(
    "select current_setting('server_version_num')::int / 10000 as version",
  )
  if (row && row.version < minVersion) {
    throw new DatabaseRefusedError(
      `PostgreSQL ${row.version} is too old: DATABASE_URL needs version ${minVersion} or later.`,
    )
  }
}

async function isCreated(connection: Connection, schema: string): Promise<boolean> {
  const [row] = await connection.query<{ found: boolean }>(
    "select to_regclass($1 || '.migrations') is not null as found",
    [schema],
  )
  return row?.found === true
}

async function readVersion(connection: Connection, schema: string): Promise<number> {
  const [row] = await connection.query<{ applied: number }>(
    `select applied from ${schema}.migrations`,
  )
  return row?.applied ?? 0
}

// `create schema if not exists` needs the privilege to create one even if it exists.
async function createSchema(connection: Connection, schema: string): Promise<number> {
  const found = await connection.query('select from pg_namespace where nspname = $1', [schema])
  if (found.length === 0) await connection.query(`create schema ${schema}`)
  await connection.query(`create table ${schema}.migrations (applied integer not null)`)
  await connection.query(`insert into ${schema}.migrations values (0)`)
  await connection.query(CommitLog.tableStatement(schema))
  return 0
}
