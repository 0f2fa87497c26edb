import { copyFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bytes, DatabaseUnavailableError, name, SqliteSql, sql } from '../../src/index.ts'

const items = name('items')
const migrations = { sample: [sql`create table ${items} (body ${bytes})`] }
const insert = sql`insert into ${items} values (${Buffer.alloc(10)})`

async function open(options: { busyTimeoutMs?: number } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'sqlite-'))
  const file = join(directory, 'items.sqlite')
  const db = new SqliteSql({ file, migrations, ...options })
  onTestFinished(async () => {
    await db.close()
    await rm(directory, { recursive: true })
  })
  return { db, file }
}

it('is readable by its owner alone, with its log and index, wherever it lies', async () => {
  const { db, file } = await open()
  await db.run(insert)

  expect([file, `${file}-wal`, `${file}-shm`].map((each) => statSync(each).mode & 0o777)).toEqual([0o600, 0o600, 0o600])
})

describe('files that are not those that were opened', () => {
  const harms: [string, (file: string) => void][] = [
    ['the deleted database', (file) => rmSync(file)],
    ['the deleted write-ahead log', (file) => rmSync(`${file}-wal`)],
    ['the deleted index of the log', (file) => rmSync(`${file}-shm`)],
    [
      'a replaced database',
      (file) => {
        copyFileSync(file, `${file}.copy`)
        renameSync(`${file}.copy`, file)
      },
    ],
  ]

  it.each(harms)('%s fails every write', async (_name, harm) => {
    const { db, file } = await open()
    await db.run(insert)

    harm(file)

    await expect(db.run(insert)).rejects.toThrow(DatabaseUnavailableError)
    expect(db.isAvailable).toBe(false)
  })

  it.each(harms)('%s is noticed without a write', async (_name, harm) => {
    const { db, file } = await open()
    const before = db.isAvailable

    harm(file)

    expect(before).toBe(true)
    await expect.poll(() => db.isAvailable).toBe(false)
  })
})

it('a failing connection reports its first error', async () => {
  const { db } = await open()
  const failure = (message: string) => Object.assign(new Error(message), { code: 'SQLITE_IOERR' })
  const prepare = vi.spyOn(db.database, 'prepare')
  const fail = (message: string) =>
    prepare.mockImplementationOnce(() => {
      throw failure(message)
    })
  fail('first')
  fail('second')

  const writing = db.run(insert)

  await expect(writing).rejects.toMatchObject({ cause: failure('first') })
  expect(db.isAvailable).toBe(false)
  prepare.mockRestore()
})

it('a database whose directory was removed is unavailable', async () => {
  const { db, file } = await open()
  renameSync(dirname(file), `${dirname(file)}-moved`)

  const snapshot = db.snapshot(async () => undefined)

  await expect(snapshot).rejects.toThrow(DatabaseUnavailableError)
  renameSync(`${dirname(file)}-moved`, dirname(file))
})

it('files that the disk does not find are like replaced ones until it does', async () => {
  const { db, file } = await open()
  renameSync(`${file}-shm`, `${file}-kept`)
  symlinkSync(`${file}-shm`, `${file}-shm`) // A link to itself fails as a broken disk does: not with ENOENT.

  await expect.poll(() => db.isAvailable).toBe(false)
  await expect(db.run(insert)).rejects.toThrow(DatabaseUnavailableError)
  renameSync(`${file}-kept`, `${file}-shm`)

  expect(await db.run(insert)).toBe(1)
  await expect.poll(() => db.isAvailable).toBe(true)
})

it('is unavailable after a failed write, and available again after the next one', async () => {
  const { db } = await open()
  const pages = Number(db.database.pragma('page_count', { simple: true }))
  db.database.pragma(`max_page_count = ${pages}`)

  await expect(db.run(sql`insert into ${items} values (${Buffer.alloc(1_000_000)})`)).rejects.toThrow('full')
  const during = db.isAvailable
  db.database.pragma('max_page_count = 1000000')
  await db.run(insert)

  expect([during, db.isAvailable]).toEqual([false, true])
})

it('is not available again after a transaction that writes nothing, but after its own attempt', async () => {
  const { db } = await open()
  const pages = Number(db.database.pragma('page_count', { simple: true }))
  db.database.pragma(`max_page_count = ${pages}`)
  await expect(db.run(sql`insert into ${items} values (${Buffer.alloc(1_000_000)})`)).rejects.toThrow('full')

  expect(await db.run(sql`delete from ${items} where 0 = 1`)).toBe(0)
  const during = db.isAvailable
  db.database.pragma('max_page_count = 1000000')

  expect(during).toBe(false)
  await expect.poll(() => db.isAvailable).toBe(true)
})

it('makes no attempt of its own beside other writes, also after one has found it available again', async () => {
  const { db } = await open()
  const setTime = vi.spyOn(performance, 'now')
  onTestFinished(() => setTime.mockRestore())
  const from = performance.now()
  db.database.pragma(`max_page_count = ${Number(db.database.pragma('page_count', { simple: true }))}`)
  await expect(db.run(sql`insert into ${items} values (${Buffer.alloc(1_000_000)})`)).rejects.toThrow('full')
  db.database.pragma('max_page_count = 1000000')
  setTime.mockReturnValue(from + 6_000)
  expect(db.isAvailable).toBe(false) // Its attempt begins.
  await db.run(sql`delete from ${items} where 0 = 1`)
  const attempts = () => db.database.pragma('user_version', { simple: true })
  const before = attempts()

  setTime.mockReturnValue(from + 10_000)
  await db.run(insert)
  setTime.mockReturnValue(from + 12_000)
  expect(db.isAvailable).toBe(true)
  await db.run(insert)

  expect(attempts()).toBe(before)
})

it('the log of a large transaction is cut after it was carried over', async () => {
  const { db, file } = await open()
  await db.run(sql`insert into ${items} values (${Buffer.alloc(40_000_000, 1)})`)
  const large = statSync(`${file}-wal`).size

  await db.run(insert)
  await db.run(insert)

  expect(large).toBeGreaterThan(40_000_000)
  expect(statSync(`${file}-wal`).size).toBeLessThanOrEqual(16 * 1024 * 1024)
})

describe('while another process has locked the database', () => {
  async function openLocked(busyTimeoutMs: number) {
    const { db, file } = await open({ busyTimeoutMs })
    const other = new SqliteSql({ file, migrations })
    onTestFinished(() => other.close())
    other.database.exec('begin immediate')
    return { db, unlock: () => other.database.exec('rollback') }
  }

  it('a write waits, and other work goes on', async () => {
    const { db, unlock } = await openLocked(3_600_000)
    let isOver = false
    const write = db.run(insert).finally(() => {
      isOver = true
    })

    for (let n = 0; n < 10; n++) await turn()
    const during = isOver
    unlock()

    expect(during).toBe(false)
    expect(await write).toBe(1)
  })

  it('all waiting writes are delayed by one time limit', async () => {
    const { db, unlock } = await openLocked(100)

    // With a time limit each they would take a quarter of an hour.
    const ends = await Promise.allSettled(Array.from({ length: 10_000 }, () => db.run(insert)))
    unlock()

    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(await db.run(insert)).toBe(1)
  })
})
