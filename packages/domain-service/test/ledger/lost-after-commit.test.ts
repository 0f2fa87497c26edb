import { createLogger } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { lossyDatabase } from '../../../../test/support/lossy-database.ts'
import { readDomain } from '../../src/dns/domain-name.ts'
import { Ledger, type StoredChange } from '../../src/ledger/ledger.ts'
import { ZoneWriter } from '../../src/zones/zone-writer.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { domain as name, openEmbedded, requestBy, row, zoneOf } from '../support/ledger.ts'

const domain = readDomain(name)
if (typeof domain === 'string') throw new Error(domain)

const present = [{ name: 'zone', type: 'A', address: '192.0.2.9' }]
const write = requestBy('author', { edit: { kind: 'ensure', present, absent: [] } })

test('what is stored is answered as stored, though the database is lost right after the commit', async () => {
  const { sql, losing } = lossyDatabase(openEmbedded())
  const ledger = new Ledger({ sql })
  const clock = new FakeClock()
  const registrar = {
    zone: async () => zoneOf(row('www')),
    cacheOptions: () => ({ ttlMs: 0, freshAgeMs: () => 0, now: clock.now }),
  }
  const log = createLogger({ name, level: 'silent' })
  // Only what proposals and the queue use.
  const writer = new ZoneWriter({ ledger, registrar, clock, log, driftIgnore: [], isActive: () => false } as never)

  const propose = async () => (await writer.propose(domain, write)) as { change: StoredChange }

  const proposed = await losing(propose)
  const approved = await losing(() => writer.approve(domain, proposed.change.id, 'other'))
  const { change: another } = await propose()
  const rejected = await losing(() => ledger.reject(another.id, 'no'))
  const queued = await losing(() => writer.queue.add(domain, write))
  const cancelled = await losing(() => ledger.cancel(queued.id))
  await writer.settle()

  expect([proposed.change.status, approved.change.status, rejected.status]).toEqual(['proposed', 'queued', 'rejected'])
  expect(approved.zones).toMatchObject((await ledger.zonesOf(approved.change.id)) ?? {})
  expect([queued.status, cancelled.status]).toEqual(['queued', 'cancelled'])
  expect(await ledger.find(queued.id)).toEqual(cancelled)
})
