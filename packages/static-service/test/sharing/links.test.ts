import { join } from 'node:path'
import { eventMigrations } from '@domains-and-files/events'
import { name, SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { Links, recordUsedUp } from '../../src/sharing/links.ts'
import { sharingTables } from '../../src/sharing/tables.ts'
import { makeFolder } from '../support/catalogs.ts'

function begin() {
  let now = 1_000_000
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  const links = new Links(database, () => now)
  const create = async (downloadsLeft: number | null, lifetimeS = 604_800, by = 'a', maker = `user:${by}`) =>
    links.create({ path: 'a/', name: null, maker, by, downloadsLeft, lifetimeS })
  return { links, create, pass: (ms: number) => (now += ms), database }
}

test('a link is found until it expires', async () => {
  const { links, create, pass } = begin()
  const { link, token } = await create(null, 60)

  pass(59_999)
  expect(await links.find(token)).toEqual(link)
  pass(1)
  expect(await links.find(token)).toBeUndefined()
  expect(await links.list({})).toEqual([])
})

test('the links of a user are listed from the newest on', async () => {
  const { links, create, pass } = begin()
  await create(null, 60, 'b')
  const made = []
  for (let count = 0; count < 4; count += 1) {
    made.unshift((await create(null)).link)
    pass(1)
  }

  expect(await links.list({ by: 'a', path: 'a/' })).toEqual(made)
})

test('a later range belongs to a download for an hour, and is a new one then', async () => {
  const { links, create, pass } = begin()
  const { link, token } = await create(2)
  const left = async () => (await links.find(token))?.downloadsLeft

  expect(await links.admit(link, 'a/b', true)).toBe(true)
  pass(3_599_999)
  expect([await links.admit(link, 'a/b', false), await left()]).toEqual([true, 1])
  expect(await links.isUnderWay(link, 'a/c')).toBe(false)
  pass(1)
  expect([await links.isUnderWay(link, 'a/b'), await left()]).toEqual([false, 1])
  expect([await links.admit(link, 'a/b', false), await left()]).toEqual([true, 0])
  pass(3_600_000)
  expect([await links.admit(link, 'a/b', false), await left()]).toEqual([false, 0])
})

test('a link that is deleted or has expired admits nothing, also where a download is under way', async () => {
  const { links, create, pass } = begin()
  const [short, deleted] = [await create(5, 60), await create(5)]
  for (const { link } of [short, deleted]) expect(await links.admit(link, 'a/b', true)).toBe(true)

  pass(60_000)
  await links.remove(deleted.link.id, () => true)

  for (const { link } of [short, deleted]) {
    expect(await links.admit(link, 'a/b', false)).toBe(false)
    expect(await links.isUnderWay(link, 'a/b')).toBe(false)
  }
})

test('a link that is used up is recorded until that has succeeded, and only then forgotten', async () => {
  const { links, create, pass } = begin()
  const [{ link }, other] = [await create(2, 60), await create(5)]
  const calls: string[] = []
  links.onUsedUp = () => calls.push('used up')
  const recorded: unknown[] = []
  const record = (fails: boolean) =>
    links.recordUsedUp(async (used) => {
      recorded.push(...used)
      if (fails) throw new Error('full')
    })

  await links.admit(other.link, 'a/b', true)
  await links.admit(link, 'a/b', true)
  await record(false)
  const early = [calls.length, recorded.length]
  await links.admit(link, 'a/c', true)
  pass(60_000)
  await create(null) // Which deletes expired links.
  await expect(record(true)).rejects.toThrow('full')
  await record(false)
  await record(false)

  expect([early, calls.length]).toEqual([[0, 0], 1])
  expect(recorded).toEqual([1, 2].map(() => ({ ...link, downloadsLeft: 0 })))
})

test('only digests of tokens are stored', async () => {
  const { create, database } = begin()
  const { token } = await create(null)

  expect(token).toMatch(/^[\w-]{22}$/)
  expect(database.database.serialize().includes(token)).toBe(false)
})

test('a caller has at most 1000 links, of which expired ones and those of other callers of that name do not count', async () => {
  const { create, pass } = begin()
  for (let count = 0; count < 1000; count += 1) await create(null, 60)

  await expect(create(null)).rejects.toMatchObject({ code: 'too_many_links' })
  expect((await create(null, 60, 'b')).link.by).toBe('b')
  // Such as a revoked API token, or a removed user: nobody sees these, or can delete them.
  expect((await create(null, 60, 'a', 'another')).link.by).toBe('a')
  pass(60_000)
  expect((await create(null)).token).toBeDefined()
})

test('a link that is used up is an event once, although a process ended before it remembered that', async () => {
  const file = join(makeFolder(), 'events.sqlite')
  const database = new SqliteSql({ file, migrations: eventMigrations, now: Date.now })
  onTestFinished(() => database.close())
  const links = ['one', 'other'].map((id) => ({
    id,
    path: 'docs/1.txt',
    name: null,
    maker: 'user:editor',
    by: 'editor',
    createdAt: 1,
    expiresAt: 2,
    downloadsLeft: 0,
  }))

  for (const used of [links.slice(0, 1), links, links])
    await database.transaction((transaction) => recordUsedUp({ transaction }, used))

  const events = await database.all<{ data: string }>(sql`select data from ${name('events')} order by id`)
  expect(events.map(({ data }) => JSON.parse(data))).toEqual(links)
})
