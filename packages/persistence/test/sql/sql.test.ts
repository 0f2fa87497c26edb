import { randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, statSync } from 'node:fs'
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import {
  bytes,
  DatabaseFullError,
  DatabaseUnavailableError,
  DataDirError,
  dialect,
  forUpdate,
  identity,
  int8,
  list,
  name,
  now,
  Postgres,
  type Sql,
  SqliteSql,
  sql,
  strict,
} from '../../src/index.ts'

const items = name('items')
const migrations = {
  sample: [
    sql`create table ${items} (
      id ${identity},
      label text not null unique,
      size ${int8} not null default 0,
      body ${bytes}
    ) ${strict};
    create index items_by_size on ${items} (size)`,
    sql`alter table ${items} add column made_at ${int8}`,
  ],
}

interface Item {
  id: number
  label: string
  size: number
  body: Buffer | null
}

const labels = sql`select label from ${items} order by label`

async function openSqlite(): Promise<Sql & AsyncDisposable> {
  const directory = await mkdtemp(joinPath(tmpdir(), 'sql-'))
  const database = new SqliteSql({ file: joinPath(directory, 'items.sqlite'), migrations })
  return Object.assign(database, {
    async [Symbol.asyncDispose]() {
      await database.close()
      await rm(directory, { recursive: true })
    },
  })
}

async function openPostgres(): Promise<Sql & AsyncDisposable> {
  const { url, ...database } = await testDatabase()
  const postgres = await Postgres.open({
    url,
    schema: 'sample',
    migrations,
    maxConnections: 4,
    timeoutMs: 150_000,
    onError: () => undefined,
  })
  return Object.assign(postgres, {
    async [Symbol.asyncDispose]() {
      await postgres.close()
      await database[Symbol.asyncDispose]()
    },
  })
}

describe.each([
  { form: 'sqlite', open: openSqlite },
  { form: 'postgres', open: openPostgres },
] as const)('sql on $form', ({ form, open }) => {
  it('binds values and reads back numbers, text and bytes', async () => {
    await using db = await open()
    const made = await db.get<Item>(
      sql`insert into ${items} (label, size, body) values (${"a'b"}, ${9_007_199_254_740_991}, ${Buffer.from([0, 255])}) returning *`,
    )
    expect(made).toMatchObject({ id: 1, label: "a'b", size: 9_007_199_254_740_991 })
    expect([...(made?.body ?? [])]).toEqual([0, 255])
    expect(await db.get(sql`select size > ${1} and ${true} = 1 as found from ${items}`)).toBeDefined()
  })

  it('nests statements and expands lists', async () => {
    await using db = await open()
    await db.run(sql`insert into ${items} (label) values ('a'), ('b'), ('c')`)
    const condition = sql`label in (${list(['a', 'c'])})`
    expect(await db.all(sql`select label from ${items} where ${condition} order by label`)).toEqual([
      { label: 'a' },
      { label: 'c' },
    ])
    expect(await db.all(sql`select label from ${items} where label in (${list([])})`)).toEqual([])
  })

  it('returns the number of rows changed', async () => {
    await using db = await open()
    await db.run(sql`insert into ${items} (label) values ('a'), ('b')`)
    expect(await db.run(sql`update ${items} set size = size + ${5}`)).toBe(2)
    expect(await db.run(sql`delete from ${items} where label = ${'x'}`)).toBe(0)
  })

  it('commits a transaction as a whole, or rolls it back when it throws', async () => {
    await using db = await open()
    await db.transaction(async (tx) => {
      await tx.run(sql`insert into ${items} (label) values ('kept')`)
      expect(await tx.all(sql`select * from ${items} ${forUpdate}`)).toHaveLength(1)
      expect(await db.all(labels)).toEqual([]) // Others do not see it yet.
    })
    const failing = db.transaction(async (tx) => {
      await tx.run(sql`insert into ${items} (label) values ('lost')`)
      throw new Error('stop')
    })
    await expect(failing).rejects.toThrow('stop')
    expect(await db.all(labels)).toEqual([{ label: 'kept' }])
  })

  it('keeps a transaction apart from writes that begin meanwhile', async () => {
    await using db = await open()
    const inside = Promise.withResolvers<void>()
    const failing = db.transaction(async (tx) => {
      await tx.run(sql`insert into ${items} (label) values ('lost')`)
      inside.resolve()
      await db.all(labels)
      throw new Error('stop')
    })
    await inside.promise
    const beside = db.run(sql`insert into ${items} (label) values ('kept')`)
    await expect(failing).rejects.toThrow('stop')
    await beside
    expect(await db.all(labels)).toEqual([{ label: 'kept' }])
  })

  it('reads one state in a snapshot', async () => {
    await using db = await open()
    await db.snapshot(async (snapshot) => {
      expect(await snapshot.all(labels)).toEqual([])
      await db.run(sql`insert into ${items} (label) values ('later')`)
      expect(await snapshot.all(labels)).toEqual([])
    })
    expect(await db.all(labels)).toEqual([{ label: 'later' }])
  })

  it('has a clock', async () => {
    await using db = await open()
    const row = await db.get<{ at: number }>(sql`select ${now} as at`)
    expect(Math.abs((row?.at ?? 0) - Date.now())).toBeLessThan(3_600_000)
  })

  it('takes different text where the dialects differ', async () => {
    await using db = await open()
    const text = dialect({ sqlite: sql`'sqlite'`, postgres: sql`'postgres'` })
    expect(await db.get(sql`select ${text} as form`)).toEqual({ form })
  })
})

describe('a SQLite database', () => {
  async function inDirectory<T>(work: (file: string) => Promise<T>): Promise<T> {
    const directory = await mkdtemp(joinPath(tmpdir(), 'sql-'))
    try {
      return await work(joinPath(directory, 'items.sqlite'))
    } finally {
      await rm(directory, { recursive: true })
    }
  }

  it('applies only the migrations that it has not seen, and refuses one that has seen more', () =>
    inDirectory(async (file) => {
      const [first, second] = migrations.sample
      if (!first || !second) throw new Error('two migrations')
      await new SqliteSql({ file, migrations: { sample: [first] } }).close()
      const whole = new SqliteSql({ file, migrations })
      expect(await whole.all(sql`select made_at from ${items}`)).toEqual([])
      await whole.close()
      await new SqliteSql({ file, migrations }).close()
      expect(() => new SqliteSql({ file, migrations: { sample: [first] } })).toThrow(DataDirError)
    }))

  it('is not created without migrations', () =>
    inDirectory(async (file) => {
      expect(() => new SqliteSql({ file })).toThrow(/unable to open/)
      expect(existsSync(file)).toBe(false)
    }))

  it('reports a lock of another process as unavailable', () =>
    inDirectory(async (file) => {
      const ours = new SqliteSql({ file, migrations, busyTimeoutMs: 0 })
      const theirs = new SqliteSql({ file, busyTimeoutMs: 0 })
      theirs.database.exec('begin immediate')
      const write = ours.run(sql`insert into ${items} (label) values ('a')`)
      await expect(write).rejects.toThrow(DatabaseUnavailableError)
      theirs.database.exec('rollback')
      await ours.run(sql`insert into ${items} (label) values ('a')`)
      await theirs.close()
      await ours.close()
    }))

  it('commits with the database flushed, but for those that a power cut may undo', () =>
    inDirectory(async (file) => {
      const db = new SqliteSql({ file, migrations })
      const mode = async () => db.database.pragma('synchronous', { simple: true })
      const modes = [db, db.unsynced, db, db.unsynced].map((each) => each.transaction(mode))
      expect(await Promise.all(modes)).toEqual([2, 1, 2, 1])
      for (const [at, each] of [db, db.unsynced].entries()) {
        await each.get(sql`insert into ${items} (label) values (${`of ${at}`}) returning id`)
        expect(await mode()).toBe(2 - at)
      }
      expect(db.database.pragma('journal_mode', { simple: true })).toBe('wal')
      await db.close()
    }))

  it('flushes once for all that wait, and commits nothing any more once that has failed', () =>
    inDirectory(async (file) => {
      const db = new SqliteSql({ file, migrations })
      const handle = await open(file)
      const datasync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
      const insert = () => db.unsynced.run(sql`insert into ${items} (label) values (${randomUUID()})`)
      await insert()
      await Promise.all([db.flush(), db.flush(), db.flush()])
      expect(datasync).toHaveBeenCalledTimes(1)

      datasync.mockRejectedValueOnce(Object.assign(new Error('broken'), { code: 'ENOSPC' }))
      await insert()
      const [failed, next] = await Promise.allSettled([db.flush(), insert().then(() => db.flush())])
      expect(failed).toMatchObject({ reason: expect.any(DatabaseFullError) })
      expect(next).toMatchObject({ reason: expect.any(DatabaseUnavailableError) })
      const count = sql`select count(*) count from ${items}`
      for (const use of [insert, () => db.flush(), () => db.run(count)])
        await expect(use()).rejects.toThrow(DatabaseUnavailableError)
      expect(await db.all(count)).toEqual([{ count: 3 }])
      expect(db.isAvailable).toBe(false)

      const logBytes = () => statSync(`${file}-wal`).size
      const before = logBytes()
      await db.close()
      expect(logBytes()).toBe(before)
      datasync.mockRestore()
      await handle.close()
    }))

  it('commits nothing behind unsynced commits whose flush by SQLite has failed, and reads go on', () =>
    inDirectory(async (file) => {
      const db = new SqliteSql({ file, migrations })
      const insert = sql`insert into ${items} (label) values (${randomUUID()})`
      const count = sql`select count(*) count from ${items}`
      // As SQLite's commit does where the kernel cannot write the log.
      const failFlush = () =>
        db.transaction(async () => {
          throw Object.assign(new Error('broken'), { code: 'SQLITE_IOERR_FSYNC' })
        })
      await expect(failFlush()).rejects.toThrow(DatabaseUnavailableError)
      await db.run(insert)
      await db.unsynced.run(sql`insert into ${items} (label) values ('unsynced')`)

      await expect(failFlush()).rejects.toThrow(DatabaseUnavailableError)

      for (const each of [db, db.unsynced]) await expect(each.run(insert)).rejects.toThrow(DatabaseUnavailableError)
      expect(await db.all(count)).toEqual([{ count: 2 }])
      expect([db.isIntact, db.isAvailable]).toEqual([false, false])
      await db.close()
    }))

  it('carries the log over only after a durable commit, which is one of 500 unsynced ones at least', () =>
    inDirectory(async (file) => {
      const db = new SqliteSql({ file, migrations })
      const modes = new Set<string>()
      for (let at = 0; at < 1100; at += 1) {
        await db.unsynced.transaction(async (transaction) => {
          await transaction.run(sql`insert into ${items} (label) values (${`${at} `.padEnd(5000)})`)
          const [flush, pages] = ['synchronous', 'wal_autocheckpoint'].map((name) =>
            db.database.pragma(name, { simple: true }),
          )
          modes.add(`${flush} ${pages}`)
        })
      }
      expect([...modes]).toEqual(['1 0', '2 1000'])
      expect(statSync(file).size).toBeGreaterThan(5_000_000)
      await db.close()
    }))

  it('carries over at its start what an earlier process has left in the log', () =>
    inDirectory(async (file) => {
      const killed = new SqliteSql({ file, migrations })
      await killed.run(sql`insert into ${items} (label) values ('left')`)
      for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${file}.copy${end}`)
      await killed.close()

      const db = new SqliteSql({ file: `${file}.copy`, migrations })

      expect(statSync(`${file}.copy-wal`).size).toBe(0)
      expect(await db.all(sql`select label from ${items}`)).toEqual([{ label: 'left' }])
      await db.close()
    }))
})
