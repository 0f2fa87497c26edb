import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import type { Zone } from '../../../src/dns/zone.ts'
import { writeNotConfirmed } from '../../../src/errors.ts'
import { effectOf, type Ledger, type QueuedChange } from '../../../src/ledger/ledger.ts'
import { Batch } from '../../../src/zones/batch/batch.ts'
import { BatchRecorder, failed } from '../../../src/zones/batch/batch-recorder.ts'
import { findDone } from '../../../src/zones/batch/evaluate-write.ts'
import { usesPostgres } from '../../support/databases.ts'
import { driveClock } from '../../support/drive-clock.ts'
import { failSends } from '../../support/failing-sends.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start } from '../../support/start.ts'
import { row, www, zone } from '../../support/zones.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const add = (service: Service, name: string) =>
  service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' } })

test('a write whose intent cannot be recorded is a 503, and nothing is sent; reads go on', async () => {
  await using service = await start({ clock: new FakeClock() })
  const repair = await failSends(service, 'insert')

  const failed = await add(service, 'a')
  const read = await service.call('GET', hosts)
  await repair()
  const again = await add(service, 'a')

  // A database that was away for less than a second is not asked whether the refusal is recorded.
  const codes = usesPostgres ? ['outcome_unknown', 'unavailable'] : ['unavailable']
  expect([failed.status, read.status]).toEqual([503, 200])
  expect(codes).toContain(failed.body.code)
  expect(again.status).toBe(201)
  expect(service.commands().filter((command) => command === 'dns.sethosts')).toHaveLength(1)
})

test('a write whose outcome cannot be recorded is done, with a warning, and resolved by the next one', async () => {
  await using service = await start({ clock: new FakeClock() })
  const repair = await failSends(service, 'update')

  const { status, body } = await add(service, 'a')
  await repair()
  await add(service, 'b')

  expect([status, body.warnings]).toEqual([201, [expect.stringContaining('could not be recorded in the history')]])
  const { body: history } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(history.history).toMatchObject([{ status: 'confirmed' }, { status: 'confirmed' }])
})

test('a write that the registrar refuses is answered, though its outcome cannot be recorded', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const repair = await failSends(service, 'update')
  service.sandbox.fault({
    kind: 'error',
    number: 2010170,
    command: 'namecheap.domains.dns.setHosts',
  })

  const { status, body } = await driveClock(clock, service, add(service, 'a'))
  await repair()
  const again = await driveClock(clock, service, add(service, 'b'))

  const unknown = [503, 'outcome_unknown'] // A replica asks the ledger how a write ended.
  expect([status, body.code]).toEqual(usesPostgres ? unknown : [422, 'registrar_rejected'])
  expect(again.status).toBe(201)
})

/** A ledger whose database is away; only these two methods are called. */
const ledgerAway = () => {
  const fail = () => Promise.reject(new DatabaseUnavailableError('silent'))
  return { endChanges: vi.fn(fail), endSend: fail } as Partial<Ledger> as Ledger
}
// The recorder reads these fields only.
const awaited = (id: number) => ({ id, isAsync: false, request: {} }) as QueuedChange
const log = { info: vi.fn(), error: vi.fn() } as never
const domain = { name: 'example.com', sld: 'example', tld: 'com' }
const cache = { put: vi.fn(), drop: vi.fn() }

test('while the database is away one write of a batch tries to record its failure, and all are answered', async () => {
  const ledger = ledgerAway()
  const reject = vi.fn()
  const recorder = new BatchRecorder({
    ledger,
    log,
    domain,
    cache,
    queue: { reject, resolve: vi.fn() },
  } as never) // What it uses.

  for (const id of [1, 2, 3]) await recorder.end([failed(awaited(id), new Error('failed'))])

  expect(ledger.endChanges).toHaveBeenCalledTimes(1)
  expect(reject).toHaveBeenCalledTimes(3)
})

test('a write that failed because the database is away does not wait for it again', async () => {
  const ledger = ledgerAway()
  const reject = vi.fn()
  const recorder = new BatchRecorder({
    ledger,
    log,
    domain,
    cache,
    queue: { reject, resolve: vi.fn() },
  } as never) // What it uses.

  await recorder.end([failed(awaited(1), new DatabaseUnavailableError('silent'))])

  expect(ledger.endChanges).not.toHaveBeenCalled()
  expect(reject).toHaveBeenCalledTimes(1)
})

test('a batch does not go on while the database that has its open sends is away', async () => {
  const open = [{ state: 'open', base: zone([]), zone: zone([www]), startedAt: new Date(0) }]
  const sends = { open: open.map((send) => ({ ...send, changes: [] })), recent: [], late: [] }
  const ledger = { ...ledgerAway(), zoneVersion: async () => 0, sendsOf: async () => sends }
  const quota = { reserve: async () => ({ slots: 3, callers: [] }), release: () => undefined }
  const registrar = { quota, zone: async () => zone([]) }
  const gather = vi.fn()
  const options = { ledger, log, domain, registrar, clock: new FakeClock(), queue: { gather }, callers: [] }
  const batch = new Batch(options as never) // It calls no other method.

  await expect(batch.run([])).rejects.toThrow(DatabaseUnavailableError)
  expect(gather).not.toHaveBeenCalled()
})

const [a, b] = [row('a', 'A', '192.0.2.9'), row('b', 'A', '192.0.2.9')]
const [kept, foreign] = [row('kept', 'A', '192.0.2.9'), row('foreign', 'A', '192.0.2.9')]

// The writes of a batch: the first adds `a`, the second adds `b`, the third removes `www`.
test.each<[string, Zone, number[]]>([
  ['lacks a record of the second', zone([kept, a]), [1, 3]],
  ['still has the record that the third removes', zone([kept, a, b, www]), [1, 2]],
  ['has a record of the first otherwise', zone([kept, { ...a, ttl: '60' }, b]), [2, 3]],
  ['has a record of nobody', zone([kept, a, b, foreign]), []],
  ['lacks a record of nobody', zone([a, b]), []],
  ['has another email type', zone([kept, a], 'FWD'), []],
])('of three writes whose zone %s, those are done whose own records are as requested', (_what, found, done) => {
  const zones = [zone([kept, www]), zone([kept, www, a]), zone([kept, www, a, b]), zone([kept, a, b])]
  const writes = zones.slice(1).map((after, at) => ({
    write: { id: at + 1, isAsync: false } as QueuedChange, // Nothing else of it is read.
    ...effectOf(zones[at] ?? after, after),
  }))

  const ended = findDone(writes, { state: 'closed', found, unanswered: 0, error: writeNotConfirmed('differs') })

  expect(ended.map(({ write }) => write.id)).toEqual(done)
})

test('a batch takes no write that would overtake one that it lacks', async () => {
  const edit = { kind: 'ensure', present: [], absent: [] }
  const request = { domain: 'example.com', by: 'admin', requestId: 'request', edit, force: false }
  const writes = [1, 2].map((id) => ({ id, isAsync: false, request }) as QueuedChange)
  const ended: number[] = []
  const options = {
    domain: { name: 'example.com' },
    callers: [],
    clock: new FakeClock(),
    cache: { put: () => undefined },
    registrar: { quota: { reserve: async () => 'queued' }, zone: async () => zone([www]) },
    ledger: {
      sendsOf: async () => ({ recent: [], open: [], late: [] }),
      endChanges: async () => undefined,
    },
    queue: { gather: async () => 1, resolve: ({ id }: QueuedChange) => ended.push(id) },
  }

  await new Batch(options as never).run(writes) // It calls no other method.

  expect(ended).toEqual([1])
})
