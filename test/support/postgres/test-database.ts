import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startOrJoinServer } from './test-server.ts'

export interface TestDatabase extends AsyncDisposable {
  url: string
  /** Without the pooler that TEST_DATABASE_POOLER may put in between. */
  directUrl: string
}

/** A new, empty database on the PostgreSQL server of this test run, which the first call starts. Disposal drops it. */
export async function testDatabase(): Promise<TestDatabase> {
  const { port } = await startOrJoinServer()
  const urlOf = (name: string, at: number | string = port) =>
    `postgres://postgres@127.0.0.1:${at}/${name}`
  const name = `test_${randomBytes(6).toString('hex')}`
  await runOnServer(urlOf('postgres'), `create database ${name} strategy file_copy`)
  return {
    url: urlOf(name, process.env.TEST_DATABASE_POOLER),
    directUrl: urlOf(name),
    [Symbol.asyncDispose]: async () => {
      await runOnServer(urlOf('postgres'), `drop database ${name} with (force)`)
    },
  }
}

/** Runs one statement on a connection of its own. */
export async function runOnServer<Row>(
  url: string,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(statement, values)).rows
  } finally {
    await client.end()
  }
}
