import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { databaseName, openDatabase } from '../../../src/ledger/database.ts'
import { SqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts'
import { confirm, domain, openLedger, row, zoneOf } from '../../support/ledger.ts'

const page = { page: 1, page_size: 100 }
const [a, b] = [row('a'), row('b')]

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
