import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { databaseName } from '../../src/ledger/database.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { realRate, type Service, start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const fresh = { headers: { 'cache-control': 'no-cache' } }

/** Lets no call be counted on disk, as a full disk does. Returns what makes room again. */
function fillDisk({ dataDir }: Service) {
  const database = new Database(join(dataDir, databaseName))
  onTestFinished(() => void database.close())
  database.exec(
    "create trigger full before insert on calls begin select raise(abort, 'disk is full'); end",
  )
  return () => database.exec('drop trigger full')
}

const healthOf = async (service: Service) => (await service.call('GET', '/health')).body

test('a full disk fails no read: calls are counted in memory, and health is unavailable', async () => {
  await using service = await start({ env: { REGISTRAR_RATE: realRate } })
  const makeRoom = fillDisk(service)

  const statuses = []
  for (let read = 0; read < 3; read++)
    statuses.push((await service.call('GET', hosts, fresh)).status)
  const full = await healthOf(service)
  const { headers } = await service.call('GET', hosts)
  makeRoom()

  expect(statuses).toEqual([200, 200, 200])
  expect(headers.get('ratelimit')).toMatch(/^"minute";r=17;/)
  expect(full).toMatchObject({
    status: 'unavailable',
    checks: { database: { status: 'unavailable' } },
  })
  expect(await healthOf(service)).toMatchObject({ checks: { database: { status: 'ok' } } })
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
  await clock.advance(5_000)

  expect(asStarted.status).toBe(200)
  expect((await waiting).status).toBe(200)
})
