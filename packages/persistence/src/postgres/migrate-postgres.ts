import { setTimeout as wait } from 'node:timers/promises'
import { codeOf, DatabaseUnavailableError, DataDirError, explainDatabaseFailure, translateError } from '../errors.ts'
import { type Migrations, name, sql } from '../sql/sql.ts'
import { type Connection, clientConfig, connectionOf, limited, type PostgresOptions } from './connections.ts'

const startMs = 30_000
const connectMs = 10_000
const retryMs = 500

const minVersion = 15

/**
 * Migrates a schema: creates it if missing, and applies pending migrations. Concurrent processes wait for each other. The
 * database must respond within `limitMs`; migrations have no limit.
 * @throws {DataDirError} if the database is unreachable or unusable, if PostgreSQL is too old, or if a newer version of
 * the service has migrated the schema.
 */
export async function migratePostgres(options: PostgresOptions, limitMs: number): Promise<void> {
  const deadline = Date.now() + startMs
  let isReported = false
  for (;;) {
    try {
      return await migrateOnce(options, limitMs)
    } catch (error) {
      const failure = translateError(error)
      // Wrong password, no such database: waiting does not help.
      const isRefusal = /^(?:28|3D)/.test(codeOf(error))
      const isWorthRetrying = failure instanceof DatabaseUnavailableError && !isRefusal
      if (!isWorthRetrying || Date.now() > deadline) {
        throw explainDatabaseFailure(failure, options.directUrl ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL')
      }
      if (!isReported) options.onError(failure)
      isReported = true
    }
    await wait(retryMs)
  }
}

async function migrateOnce(options: PostgresOptions, limitMs: number) {
  const { url, directUrl, schema } = options
  const { default: pg } = await import('pg')
  const config = await clientConfig({ url: directUrl ?? url, timeoutMs: 0, name: schema })
  const client = new pg.Client({ ...config, connectionTimeoutMillis: connectMs })
  client.on('error', () => undefined) // It rejects the query, too.
  try {
    await client.connect()
    const connection = connectionOf(client, schema)
    await client.query(limited(limitMs, 'begin isolation level read committed; set local statement_timeout = 0'))
    await migrate(connection, options)
    await client.query('commit')
  } finally {
    client.end().catch(() => undefined)
  }
}

async function migrate(connection: Connection, { schema, migrations: parts, isRestore }: PostgresOptions) {
  await requireVersion(connection)
  await lockSchema(connection, schema)
  const created = sql`select 1 where to_regclass(${`${schema}.migrations`}) is not null`
  if (!(await connection.get(created))) await createSchema(connection, schema)
  if (!isRestore) await refuseUnfinished(connection)
  for (const [part, statements] of Object.entries(parts)) await migratePart(connection, part, statements)
}

/** Locks the schema against concurrent migrations and restores until the transaction ends. */
export async function lockSchema(connection: Connection, schema: string): Promise<void> {
  await connection.run(sql`select pg_advisory_xact_lock(hashtextextended(${`migrate ${schema}`}, 0))`)
}

async function migratePart(connection: Connection, part: string, statements: Migrations[string]) {
  const row = await connection.get<{ applied: number }>(sql`select applied from ${migrations} where part = ${part}`)
  const applied = row?.applied ?? 0
  if (applied > statements.length) {
    const fault = `The schema ${connection.schema} in DATABASE_URL is of a newer version of this service`
    throw new DataDirError(`${fault}: start that version, or restore a backup made by this one.`)
  }
  if (applied === statements.length) return
  for (const statement of statements.slice(applied))
    await connection.run(typeof statement === 'string' ? sql([statement]) : statement)
  await connection.run(sql`insert into ${migrations} (part, applied) values (${part}, ${statements.length})
    on conflict (part) do update set applied = excluded.applied`)
}

const migrations = name('migrations')

export async function refuseUnfinished(connection: Connection): Promise<void> {
  if (!(await connection.get(sql`select 1 from ${restores}`))) return
  throw new DataDirError(
    `A restore into the schema ${connection.schema} was interrupted: run it again, or drop the schema.`,
  )
}

async function requireVersion(connection: Connection) {
  const row = await connection.get<{ version: number }>(
    sql`select current_setting('server_version_num')::int / 10000 as version`,
  )
  if (!row || row.version >= minVersion) return
  const needed = `DATABASE_URL needs version ${minVersion} or later`
  throw new DataDirError(`PostgreSQL ${row.version} is too old: ${needed}.`)
}

// `create schema if not exists` needs the privilege to create one even if it exists.
async function createSchema(connection: Connection, schema: string) {
  const found = await connection.get(sql`select from pg_namespace where nspname = ${schema}`)
  if (!found) await connection.query(`create schema ${schema}`)
  await connection.run(sql`create table ${migrations} (part text primary key, applied integer not null);
    create function ${name('now_ms')}() returns bigint language sql volatile
      as $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$;
    create table if not exists ${name('commits')} (
      id uuid primary key,
      committed_at timestamptz not null default now(),
      is_fence boolean not null default false
    );
    create table ${restores} (backup text primary key)`)
}

/** Table with a row while a restore is incomplete. */
export const restores = name('restore')
