import { createLogger } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { lossyDatabase } from '../../../../test/support/lossy-database.ts'
import { readDomain } from '../../src/dns/domain-name.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { Approvals } from '../../src/zones/approvals.ts'
import { WriteQueue } from '../../src/zones/write-queue.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { domain as name, openEmbedded, requestBy, row, zoneOf } from '../support/ledger.ts'

const domain = readDomain(name)
if (typeof domain === 'string') throw new Error(domain)

const write = requestBy('author')

test('what is stored is answered as stored, though the database is lost right after the commit', async () => {
  const { sql, losing } = lossyDatabase(openEmbedded())
  const ledger = new Ledger({ sql })
  const options = { ledger, clock: new FakeClock(), log: createLogger({ name, level: 'silent' }) }
  const readCurrent = async () => zoneOf(row('www'))
  const approvals = new Approvals({
    ledger,
    readCurrent,
    onQueued: () => undefined,
  })
  const changes = new WriteQueue({ ...options, readCurrent } as never)

  const proposed = await losing(() => approvals.propose(domain, write))
  const approved = await losing(() => approvals.approve(domain, proposed.change.id, 'other'))
  const { change: another } = await approvals.propose(domain, write)
  const rejected = await losing(() => approvals.reject(another.id, 'no'))
  const queued = await losing(() => changes.add(domain, write))
  const cancelled = await losing(() => ledger.cancel(queued.id))
  await changes.close()

  expect([proposed, approved, rejected].map(({ change }) => change.status)).toEqual([
    ...['proposed', 'queued', 'rejected'],
  ])
  expect(approved.zones).toMatchObject((await ledger.zonesOf(approved.change.id)) ?? {})
  expect([queued.status, cancelled.status]).toEqual(['queued', 'cancelled'])
  expect(await ledger.find(queued.id)).toEqual(cancelled)
})
