import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startOrJoinServer } from './test-server.ts'

export interface TestDatabase extends AsyncDisposable {
  url: string
  /** Without the pooler that TEST_DATABASE_POOLER may put in between. */
  directUrl: string
}

/** What a new database holds: the name of a database of the test run, which `prepare` fills once. */
export interface DatabaseTemplate {
  name: string
  prepare: (url: string) => Promise<void>
}

/**
 * A new database on the PostgreSQL server of this test run, which the first call starts: empty, or a copy of a template,
 * which costs a third of migrations. Disposal drops it.
 */
export async function testDatabase(template?: DatabaseTemplate): Promise<TestDatabase> {
  const { port } = await startOrJoinServer()
  const urlOf = (name: string, at: number | string = port) => `postgres://postgres@127.0.0.1:${at}/${name}`
  const name = `test_${randomBytes(6).toString('hex')}`
  if (template) await prepareOnce(template, urlOf)
  const original = template ? ` template ${template.name}` : ''
  server ??= keepConnection(urlOf('postgres'))
  await server.query(`create database ${name}${original} strategy file_copy`)
  return {
    url: urlOf(name, process.env.TEST_DATABASE_POOLER),
    directUrl: urlOf(name),
    [Symbol.asyncDispose]: async () => {
      await server?.query(`drop database ${name} with (force)`)
    },
  }
}

// The connection of this process.
let server: pg.Pool | undefined

const prepared = new Map<string, Promise<void>>()

function prepareOnce(template: DatabaseTemplate, urlOf: (name: string) => string): Promise<void> {
  const preparation = prepared.get(template.name) ?? prepareTemplate(template, urlOf)
  prepared.set(template.name, preparation)
  return preparation
}

async function prepareTemplate({ name, prepare }: DatabaseTemplate, urlOf: (name: string) => string) {
  const client = new pg.Client(urlOf('postgres'))
  await client.connect()
  try {
    // The other processes of the test run wait.
    await client.query('select pg_advisory_lock(hashtext($1))', [name])
    const found = await client.query('select from pg_database where datname = $1', [name])
    if (found.rowCount) return
    await client.query(`drop database if exists ${name}_new with (force)`)
    await client.query(`create database ${name}_new strategy file_copy`)
    await prepare(urlOf(`${name}_new`))
    // A database with connections can be neither renamed nor copied, and a closed one may take a moment to end.
    await client.query('select pg_terminate_backend(pid, 30000) from pg_stat_activity where datname = $1', [
      `${name}_new`,
    ])
    await client.query(`alter database ${name}_new rename to ${name}`)
  } finally {
    await client.end()
  }
}

/** One connection for many statements, which does not keep the process alive. */
export function keepConnection(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true })
  pool.on('error', () => undefined) // The next statement opens another one.
  return pool
}

/** Runs one statement on a connection of its own. */
export async function runOnServer<Row>(url: string, statement: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(statement, values)).rows
  } finally {
    await client.end()
  }
}
