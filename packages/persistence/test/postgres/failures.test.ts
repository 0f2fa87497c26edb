import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { ServerProcess } from '../../../../test/support/postgres/server-process.ts'
import { type TestDatabase, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import {
  DatabaseFullError,
  DatabaseUnavailableError,
  OutcomeUnknownError,
  Postgres,
  type PostgresOptions,
} from '../../src/index.ts'

const schema = 'sample'
const migrations = { items: [`create table ${schema}.items (id int primary key)`] }

function open(url: string, options: Partial<PostgresOptions> = {}) {
  return Postgres.open({
    ...{ url, maxConnections: 2, timeoutMs: 5000, schema, migrations },
    onError: () => undefined,
    ...options,
  })
}

const add = (postgres: Postgres, id: number) =>
  postgres.transaction(async (transaction) => {
    await transaction.query(`insert into ${schema}.items values ($1)`, [id])
    return id
  })

async function isStored(postgres: Postgres, id: number) {
  const rows = await postgres.query(`select 1 from ${schema}.items where id = $1`, [id])
  return rows.length === 1
}

describe('a connection that is cut', () => {
  let database: TestDatabase
  let proxy: PostgresProxy
  let postgres: Postgres
  let nextId = 0

  beforeAll(async () => {
    database = await testDatabase()
    proxy = await PostgresProxy.open(database.url)
    postgres = await open(proxy.url)
  })
  beforeEach(() => {
    proxy.onCommit = undefined
    nextId += 1
  })
  afterAll(async () => {
    await postgres.close()
    await proxy[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  it('while idle is replaced without an error', async () => {
    await postgres.query('select 1')

    proxy.cut()

    // The pool notices at once or at the next statement, which then fails.
    await postgres.query('select 1').catch(() => undefined)
    expect(await postgres.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('in the middle of a transaction leaves nothing behind', async () => {
    const cut = postgres.transaction(async (transaction) => {
      await transaction.query(`insert into ${schema}.items values ($1)`, [nextId])
      proxy.cut()
      await transaction.query('select 1')
    })

    await expect(cut).rejects.toThrow(DatabaseUnavailableError)
    expect(await isStored(postgres, nextId)).toBe(false)
  })

  it('after COMMIT took effect is looked up, and the transaction succeeds', async () => {
    const faults = ['hide' as const]
    proxy.onCommit = () => faults.pop()

    expect(await add(postgres, nextId)).toBe(nextId)

    expect(faults).toEqual([])
    expect(await isStored(postgres, nextId)).toBe(true)
  })

  it('before COMMIT arrived is looked up, and the transaction fails without effect', async () => {
    const faults = ['lose' as const]
    proxy.onCommit = () => faults.pop()

    await expect(add(postgres, nextId)).rejects.toThrow(DatabaseUnavailableError)

    expect(faults).toEqual([])
    expect(await isStored(postgres, nextId)).toBe(false)
    expect(await add(postgres, nextId)).toBe(nextId)
  })

  it('again and again in COMMIT never acknowledges what is lost, nor refuses what is done', async () => {
    let commits = 0
    proxy.onCommit = () => {
      commits += 1
      return commits % 3 === 0 ? 'lose' : commits % 3 === 1 ? 'hide' : undefined
    }

    const ids = Array.from({ length: 60 }, (_, index) => 1000 + index)
    const outcomes = await Promise.all(
      ids.map((id) =>
        add(postgres, id).then(
          () => true,
          () => false,
        ),
      ),
    )

    proxy.onCommit = undefined
    const stored = await Promise.all(ids.map((id) => isStored(postgres, id)))
    expect(stored).toEqual(outcomes)
    expect(new Set(outcomes)).toEqual(new Set([true, false]))
  })
})

describe('a server that does not answer', () => {
  it('fails a statement after its time limit, and is used again when it answers', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await open(proxy.url, { timeoutMs: 300 })
    proxy.silence()

    await expect(postgres.query('select 1')).rejects.toThrow(DatabaseUnavailableError)
    await expect(add(postgres, 1)).rejects.toThrow(DatabaseUnavailableError)

    proxy.resume()
    expect(await add(postgres, 2)).toBe(2)
    await postgres.close()
  })

  it('at COMMIT and during its look-up leaves the outcome unknown', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await open(proxy.url, { timeoutMs: 300 })
    proxy.onCommit = () => {
      proxy.silence()
      return undefined
    }

    await expect(add(postgres, 1)).rejects.toThrow(OutcomeUnknownError)

    proxy.resume()
    await postgres.close()
  })

  it('ends an abandoned transaction, whose locks are free again', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const [abandoned, other] = [
      await open(proxy.url, { timeoutMs: 300 }),
      await open(database.url, { timeoutMs: 30_000 }),
    ]
    const waiting = abandoned.transaction(async (transaction) => {
      await transaction.query(`insert into ${schema}.items values (1)`)
      proxy.silence()
      await transaction.query('select 1')
    })
    await expect(waiting).rejects.toThrow(DatabaseUnavailableError)

    expect(await add(other, 1)).toBe(1)

    await abandoned.close()
    await other.close()
  })
})

describe('the server', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pg-'))
  let server: ServerProcess
  let postgres: Postgres

  beforeAll(async () => {
    server = await ServerProcess.create(join(directory, 'server'))
    postgres = await open(server.urlOf('postgres'))
  }, 60_000)
  afterAll(async () => {
    await postgres.close()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })

  it.each(['SIGINT', 'SIGQUIT'] as const)(
    'that is stopped by %s and started again is used again, and the probe sees both',
    async (signal) => {
      const before = signal === 'SIGINT' ? 1 : 2
      await add(postgres, before)
      await server.stop(signal)

      await expect(postgres.query('select 1')).rejects.toThrow(DatabaseUnavailableError)
      await expect(add(postgres, 100)).rejects.toThrow(DatabaseUnavailableError)
      await expect.poll(() => postgres.isAvailable, { timeout: 20_000 }).toBe(false)

      await server.start()
      await expect.poll(() => postgres.isAvailable, { timeout: 20_000 }).toBe(true)
      expect(await isStored(postgres, before)).toBe(true)
      expect(await isStored(postgres, 100)).toBe(false)
    },
  )

  it('with a newer schema is refused in one sentence', async () => {
    const older = open(server.urlOf('postgres'), { migrations: { items: [] } })

    await expect(older).rejects.toThrow(
      'The schema sample in DATABASE_URL is of a newer version of this service: start that version, or restore a backup made by this one.',
    )
  })

  it('whose disk is full refuses the transaction as such', async () => {
    const full = postgres.transaction((transaction) =>
      transaction.query(
        `do $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`,
      ),
    )

    await expect(full).rejects.toThrow(DatabaseFullError)
  })

  it('that does not know the database is refused at once', async () => {
    await expect(open(server.urlOf('missing'))).rejects.toThrow(
      'Cannot use the database in DATABASE_URL: database "missing" does not exist.',
    )
  })
})

describe('notifications', () => {
  it('arrive on a direct connection, and after a lost one every listener is called', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    const postgres = await open(database.url, { directUrl: proxy.url })
    const payloads: string[] = []
    expect(await postgres.listen('sample_changes', (payload) => payloads.push(payload))).toBe(true)
    await expect.poll(() => payloads, { timeout: 20_000 }).toEqual([''])

    await postgres.query("select pg_notify('sample_changes', 'first')")
    await expect.poll(() => payloads, { timeout: 20_000 }).toEqual(['', 'first'])
    proxy.cut()
    await expect.poll(() => payloads, { timeout: 20_000 }).toEqual(['', 'first', ''])

    await postgres.close()
  })

  it('need a direct connection', async () => {
    await using database = await testDatabase()
    const postgres = await open(database.url)

    expect(await postgres.listen('sample_changes', () => undefined)).toBe(false)

    await postgres.close()
  })
})
