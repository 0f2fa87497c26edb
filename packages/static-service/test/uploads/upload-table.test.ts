import { SqliteSql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { UploadTable, uploadMigrations } from '../../src/uploads/upload-table.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const saved = { size: 5, state: null, tail: null }

function openTable(sync?: () => Promise<void>) {
  const clock = { now: 1_800_000_000_000 }
  const sql = new SqliteSql({
    file: ':memory:',
    migrations: { uploads: uploadMigrations },
    now: () => clock.now,
  })
  onTestFinished(() => sql.close())
  return { clock, table: new UploadTable(sql, hourMs, sync) }
}

const upload = { owner: 'alice', path: 'a', metadata: '', length: 10 }

test('a second writer takes over once the first has been silent for ten seconds', async () => {
  const { clock, table } = openTable()
  await table.create('u', upload)
  const first = await acquire(table)

  clock.now += 6000
  await table.update(first, {})
  clock.now += 9999
  const early = await table.acquire('u')
  clock.now += 1
  const second = await acquire(table)

  expect(early).toBeUndefined()
  expect(await table.update(first, saved)).toBe(false)
  expect(await table.update(first, {})).toBe(false)
  await table.release(first)
  expect(await table.update(second, saved)).toBe(true)
  await table.release(second)
  expect(await table.update(second, {})).toBe(false)
  expect(await table.acquire('u')).toMatchObject({ size: 5, epoch: 1 })
})

test('an upload expires after its last request, is known for a day, and is then forgotten', async () => {
  const { clock, table } = openTable()
  await table.create('u', upload)
  clock.now += hourMs - 1
  const writer = await acquire(table)
  await table.update(writer, saved)
  await table.release(writer)

  clock.now += hourMs - 1
  const none = await table.expire()
  const known = await table.find('u')
  clock.now += 1
  const due = await table.find('u')
  const expired = await table.expire()
  clock.now += dayMs - 1
  await table.expire()
  const ended = await table.find('u')
  clock.now += 1
  await table.expire()

  expect([none, known?.isEnded, due?.isEnded]).toEqual([[], 0, 1])
  expect(expired.map(({ id }) => id)).toEqual(['u'])
  expect([ended?.isEnded, await table.acquire('u')]).toEqual([1, undefined])
  expect(await table.find('u')).toBeUndefined()
})

test('an upload does not expire while its writer is heard of', async () => {
  const { clock, table } = openTable()
  await table.create('u', upload)
  const writer = await acquire(table)
  clock.now += hourMs - 5000
  await table.update(writer, {})

  clock.now += 5000

  expect(await table.expire()).toEqual([])
  expect(await table.update(writer, saved)).toBe(true)
})

async function acquire(table: UploadTable) {
  const upload = await table.acquire('u')
  if (!upload) throw new Error('another one writes')
  return upload
}

test('what a response tells is flushed before, and leases are not', async () => {
  let flushes = 0
  const { table } = openTable(async () => {
    flushes += 1
  })
  const countOf = async (work: Promise<unknown>) => {
    const before = flushes
    await work
    return flushes - before
  }

  const writer = { id: 'u', epoch: 0 }
  const counts = {
    create: await countOf(table.create('u', upload)),
    acquire: await countOf(table.acquire('u')),
    renew: await countOf(table.update(writer, {})),
    record: await countOf(table.update(writer, saved)),
    findWhileWritten: await countOf(table.find('u')),
    release: await countOf(table.release(writer)),
    find: await countOf(table.find('u')),
    again: await countOf(table.acquire('u')),
    end: await countOf(table.update(writer, { tail: null }, 0)),
  }

  expect(counts).toEqual({
    ...{ create: 1, acquire: 0, renew: 0, record: 1, findWhileWritten: 1 },
    ...{ release: 0, find: 0, again: 0, end: 1 },
  })
})
