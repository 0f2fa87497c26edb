import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { databaseName, openDatabase } from '../../../src/ledger/database.ts'
import { SqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts'
import { confirm, domain, openLedger, requestBy, row, zoneOf } from '../../support/ledger.ts'

const page = { page: 1, page_size: 100 }
const [a, b] = [row('a'), row('b')]

test('equal zones are stored once, whatever the order of their rows', async () => {
  const { ledger, database } = openLedger()

  await confirm(ledger, zoneOf(a, b), zoneOf(a))
  await confirm(ledger, zoneOf(a), zoneOf(b, a))

  expect(database.prepare('select count(*) from zones').pluck().get()).toBe(2)
})

test('a list of a hundred changes of full zones is small, and reads no zone', async () => {
  const { ledger, database } = openLedger()
  const full = (n: number) =>
    zoneOf(
      ...Array.from({ length: 150 }, (_, at) => row(`t${at}`, `${n}${'x'.repeat(2_480)}`, 'TXT')),
    )
  for (let n = 0; n < 100; n++) await confirm(ledger, full(n), full(n + 1))
  database.exec('delete from zones')

  const { changes, total } = await ledger.list({ domain }, page)

  expect(total).toBe(100)
  expect(JSON.stringify(changes).length).toBeLessThan(1_000_000)
  expect(changes[0]?.summary).toMatchObject({
    kept: 0,
    omitted: { added: 149, removed: 149 },
    added: [{ name: 't0' }],
  })
})

test('a change is found with its own rows and both zones', async () => {
  const { ledger } = openLedger()
  const id = await confirm(ledger, zoneOf(a), zoneOf(a, b))

  expect(await ledger.zonesOf(id)).toEqual({
    before: { emailType: 'NONE', rows: [a] },
    after: { emailType: 'NONE', rows: [a, b] },
    added: [b],
    removed: [],
  })
})

test('lists are filtered by domain, author, status, time and what the reader may see', async () => {
  const { ledger } = openLedger()
  const other = requestBy('editor', { domain: 'shop.example.co.uk' })
  await confirm(ledger, zoneOf(a), zoneOf(b))
  await confirm(ledger, zoneOf(a), zoneOf(b), other)
  await ledger.enqueue(requestBy('admin'))
  const count = async (filter: object) => (await ledger.list(filter, page)).total

  expect(await count({})).toBe(3)
  expect(await count({ domain })).toBe(2)
  expect(await count({ by: 'editor' })).toBe(1)
  expect(await count({ status: 'queued' })).toBe(1)
  expect(await count({ sentOnly: true })).toBe(2)
  expect(await count({ since: new Date(Date.now() + 60_000) })).toBe(0)
  expect(await count({ domains: ['*.co.uk'] })).toBe(1)
  expect(await count({ domains: ['o.uk', 'xample.com'] })).toBe(0)
  expect(await count({ domains: [domain, '*.example.co.uk'] })).toBe(3)
  expect(await count({ domains: [] })).toBe(0)
})

test('a claimed change cannot be cancelled, and a cancelled one cannot be claimed', async () => {
  const { ledger } = openLedger()
  const [first, second] = [
    await ledger.enqueue(requestBy('admin')),
    await ledger.enqueue(requestBy('admin')),
  ]

  expect(await ledger.cancel(first)).toBe(true)
  expect(await ledger.claim([first, second])).toEqual([second])
  expect(await ledger.cancel(second)).toBe(false)
  expect((await ledger.find(first))?.status).toBe('cancelled')
})

test('what was about to be sent when the process ended is queued again or cancelled', async () => {
  const { ledger } = openLedger()
  const queued = await ledger.enqueue(requestBy('admin'))
  await ledger.claim([queued])
  const intents = [
    {
      id: undefined,
      request: requestBy('admin'),
      before: zoneOf(a),
      after: zoneOf(b),
      warnings: [],
    },
  ]
  const send = await ledger.startSend({
    domain,
    base: zoneOf(a),
    zone: zoneOf(b),
    intents,
    repairs: [],
  })
  await ledger.endSend(send.id, { state: 'refused', givenUp: false, changes: [] })

  await ledger.recover()

  const statuses = (await ledger.list({}, page)).changes.map(({ status }) => status)
  expect(statuses).toEqual(['cancelled', 'queued'])
})

test('a late write whose repair was never sent is to be repaired again', async () => {
  const { ledger } = openLedger()
  const send = (zone = zoneOf(b), repairs: number[] = []) =>
    ledger.startSend({ domain, base: zoneOf(a), zone, intents: [], repairs })
  const late = await send()
  await ledger.endSend(late.id, { state: 'settled', found: zoneOf(b), givenUp: true, changes: [] })
  await confirm(ledger, zoneOf(b), zoneOf(a, b))
  const repair = await send(zoneOf(a, b), [late.id])
  const during = await ledger.lateSends(domain)

  await ledger.endSend(repair.id, {
    state: 'unsent',
    givenUp: false,
    releaseRepairs: true,
    changes: [],
  })

  expect(during).toEqual([])
  expect(await ledger.lateSends(domain)).toMatchObject([{ id: late.id }])
})

test('pruning deletes old changes and the zones that only they refer to', async () => {
  let now = Date.now() - 10 * 86_400_000
  const { ledger, database } = openLedger(() => now)
  await confirm(ledger, zoneOf(a), zoneOf(b))
  now = Date.now()
  await confirm(ledger, zoneOf(b), zoneOf(a, b))

  const deleted = await ledger.prune(new Date(now - 5 * 86_400_000))

  expect(deleted).toBe(1)
  expect((await ledger.list({}, page)).total).toBe(1)
  expect(database.prepare('select count(*) from zones').pluck().get()).toBe(2)
})

test('a full disk is 507 for a write, and no failure for a read', async () => {
  const { ledger, database } = openLedger()
  const id = await confirm(ledger, zoneOf(a), zoneOf(b))
  const pages = Number(database.pragma('page_count', { simple: true }))
  database.pragma(`max_page_count = ${pages}`)
  const large = zoneOf(
    ...Array.from({ length: 150 }, (_, at) =>
      row(`t${at}`, randomBytes(1_000).toString('hex'), 'TXT'),
    ),
  )

  await expect(confirm(ledger, zoneOf(b), large)).rejects.toMatchObject({
    status: 507,
    code: 'insufficient_storage',
  })
  expect(ledger.isWritable()).toBe(false)
  expect((await ledger.find(id))?.status).toBe('confirmed')

  database.pragma('max_page_count = 1000000')
  await confirm(ledger, zoneOf(b), large)
  expect(ledger.isWritable()).toBe(true)
})

test('the history of version 1 is kept, with its ids, its times and its zones', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ledger-'))
  const old = new Database(join(dataDir, databaseName))
  old.exec(`create table changes (id integer primary key autoincrement, domain text not null, at text not null,
      by text not null, request_id text not null, added text not null, removed text not null, kept integer not null,
      before text not null, after text not null) strict;
    create index changes_of_domain on changes (domain, id desc);
    create table calls (at integer not null) strict;
    create index calls_at on calls (at);
    pragma user_version = 1`)
  const zone = (...rows: object[]) => JSON.stringify({ emailType: 'MX', rows })
  const record = { id: 'b71c42652efd', name: 'b', type: 'A', address: '192.0.2.1', ttl: 1800 }
  old
    .prepare(
      `insert into changes values (7, 'example.com', '2026-01-02T03:04:05.678Z', 'editor', 'r', ?, '[]', 1, ?, ?)`,
    )
    .run(JSON.stringify([record]), zone(a), zone(a, b))
  old.close()

  const database = openDatabase(dataDir)
  onTestFinished(() => {
    database.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const ledger = new SqliteLedger(database)

  expect((await ledger.list({ domain, sentOnly: true }, page)).changes).toMatchObject([
    {
      id: 7,
      by: 'editor',
      status: 'confirmed',
      sentAt: new Date('2026-01-02T03:04:05.678Z'),
      summary: { added: [record], removed: [], kept: 1 },
      emailTypeBefore: 'MX',
    },
  ])
  expect(await ledger.zonesOf(7)).toMatchObject({ before: { rows: [a] }, after: { rows: [a, b] } })
  expect(await confirm(ledger, zoneOf(a), zoneOf(b))).toBe(8)
})
