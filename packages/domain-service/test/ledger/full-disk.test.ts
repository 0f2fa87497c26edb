import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { databaseName } from '../../src/ledger/schema.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { confirm, openLedger, row, zoneOf } from '../support/ledger.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { realRate, type Service, start } from '../support/start.ts'

const [a, b] = [row('a'), row('b')]

const hosts = '/api/domains/example.com/dns/hosts'
const fresh = { headers: { 'cache-control': 'no-cache' } }

/** Lets nothing be stored in these tables, by default those that reads write to, as a full disk does. Returns what makes room again. */
function fillDisk({ dataDir }: Service, ...tables: string[]) {
  const database = new Database(join(dataDir, databaseName))
  onTestFinished(() => void database.close())
  const full = tables.length > 0 ? tables : ['calls', 'known_zones']
  for (const table of full)
    database.exec(
      `create trigger full_${table} before insert on ${table} begin select raise(abort, 'disk is full'); end`,
    )
  return () => {
    for (const table of full) database.exec(`drop trigger full_${table}`)
  }
}

const healthOf = async (service: Service) => (await service.call('GET', '/health')).body

test('a full disk fails no read: calls are counted in memory, and health is unavailable', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: realRate } })
  const makeRoom = fillDisk(service)

  const statuses = []
  for (let read = 0; read < 3; read++) statuses.push((await service.call('GET', hosts, fresh)).status)
  const full = await healthOf(service)
  const { headers } = await service.call('GET', hosts)
  makeRoom()

  expect(statuses).toEqual([200, 200, 200])
  expect(headers.get('ratelimit')).toMatch(/^"minute";r=17;/)
  expect(full).toMatchObject({
    status: 'unavailable',
    checks: { database: { status: 'unavailable' } },
  })
  // Health tries to write again.
  await expect.poll(() => healthOf(service)).toMatchObject({ checks: { database: { status: 'ok' } } })
})

test('a call that waited for its slot on a full disk is made, and the process lives', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock, env: { REGISTRAR_RATE: '2/minute' } })
  const asStarted = await service.call('GET', hosts)
  await clock.advance(55_000)
  fillDisk(service)

  const waiting = service.call('GET', '/api/domains/example.com/info')
  const isWaiting = async () => (await service.call('GET', '/api/registrar')).body.calls_waiting
  await expect.poll(isWaiting).toBe(1)
  await clock.advance(5_500)

  expect(asStarted.status).toBe(200)
  expect((await waiting).status).toBe(200)
})

test('on a full disk a dyndns2 update of an address that is set already is nochg', async () => {
  // A client is answered within 25 s, on a busy machine without the zone.
  await using service = await start({ clock: new FakeClock(), env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  const headers = basic(await createToken(service, { role: 'editor' }))
  fillDisk(service, 'host_updates')

  const query = 'hostname=www.example.com&myip=192.0.2.1'
  const answer = await send(service, 'GET', `/nic/update?${query}`, { headers })

  expect(answer.text).toBe('nochg 192.0.2.1')
})

test('a full disk is 507 for a write, and no failure for a read', async () => {
  const { ledger, database } = openLedger()
  const id = await confirm(ledger, zoneOf(a), zoneOf(b))
  const pages = Number(database.database.pragma('page_count', { simple: true }))
  database.database.pragma(`max_page_count = ${pages}`)
  const large = zoneOf(
    ...Array.from({ length: 150 }, (_, at) => row(`t${at}`, randomBytes(1_000).toString('hex'), 'TXT')),
  )

  await expect(confirm(ledger, zoneOf(b), large)).rejects.toMatchObject({
    status: 507,
    code: 'insufficient_storage',
  })
  expect(database.isAvailable).toBe(false)
  expect((await ledger.find(id))?.status).toBe('confirmed')

  database.database.pragma('max_page_count = 1000000')
  await confirm(ledger, zoneOf(b), large)
  expect(database.isAvailable).toBe(true)
})

test('after the database files were deleted nothing is written, and health is unavailable', async () => {
  await using service = await start()
  const add = (name: string, headers = {}) =>
    service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' }, headers })
  const isAsync = { prefer: 'respond-async' }
  await add('before')
  await add('before', isAsync)
  const zone = service.live()
  for (const end of ['', '-wal', '-shm']) rmSync(join(service.dataDir, databaseName + end))

  const writes = [await add('after'), await add('after', isAsync)]

  for (const { status, body } of writes) expect([status, body.code]).toEqual([503, 'unavailable'])
  expect(service.live()).toEqual(zone)
  expect(await healthOf(service)).toMatchObject({ checks: { database: { status: 'unavailable' } } })
})

test('a write that failed with the ledger is not carried out later; an asynchronous one is', async () => {
  await using service = await start({ clock: new FakeClock() })
  const database = new Database(join(service.dataDir, databaseName))
  onTestFinished(() => void database.close())
  const add = (name: string, headers = {}) =>
    service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' }, headers })
  const later = await add('later', { prefer: 'respond-async' })
  database.exec("create trigger full before update on changes begin select raise(abort, 'disk is full'); end")

  const failed = await add('failed')
  database.exec('drop trigger full')
  const next = await add('next')

  expect([later.status, failed.status, failed.body.code]).toEqual([202, 503, 'unavailable'])
  expect(next.status).toBe(201)
  expect(
    service
      .live()
      .map((row) => row.split(' ')[0])
      .sort(),
  ).toEqual(['later', 'next', 'www'])
  const { body } = await service.call('GET', '/api/changes?status=queued')
  expect(body.change_list).toEqual([])
})
