import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { deleteHistory } from '../../../src/ledger/history-pruning.ts'
import { Ledger } from '../../../src/ledger/ledger.ts'
import { Leases } from '../../../src/ledger/replicas/leases.ts'
import { makeDatabase } from '../../support/databases.ts'
import { begin, confirm, domain, enqueue, requestBy, row, zoneOf } from '../../support/ledger.ts'

const [a, b] = [row('a'), row('b')]
const send = { base: zoneOf(a), zone: zoneOf(b), intents: [], repairs: [] }

/** The ledgers of two replicas on one database; the first one holds the lease of the domain. */
async function openReplicas() {
  const stack = new AsyncDisposableStack()
  const { postgres } = stack.use(await makeDatabase())
  const open = (holder: string) => {
    const leases = new Leases({ sql: postgres, holder, ttlMs: 60_000, onError: () => undefined })
    stack.defer(() => leases.close())
    return { leases, ledger: new Ledger({ sql: postgres, leases }) }
  }
  const [first, second] = [open('first'), open('second')]
  await first.leases.tryAcquire(domain)
  return { postgres, first, second, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const lost = { status: 503, code: 'unavailable' }

test('only the holder of the lease can record an intent', async () => {
  await using set = await openReplicas()

  await expect(set.second.ledger.startSend(send)).rejects.toMatchObject(lost)
  await expect(set.first.ledger.startSend(send)).resolves.toMatchObject({ id: 1 })
})

test('a holder that has lost its lease without noticing records no intent and no outcome', async () => {
  await using set = await openReplicas()
  const started = await set.first.ledger.startSend(send)
  await set.postgres.query('update domain_service.leases set until = 0')
  await set.second.leases.tryAcquire(domain)

  const outcome = { state: 'settled' as const, unanswered: 0, changes: [] }

  await expect(set.first.ledger.startSend(send)).rejects.toMatchObject(lost)
  await expect(set.first.ledger.endSend(started, outcome)).rejects.toMatchObject(lost)
  await set.second.ledger.endSend(started, outcome)
  expect((await set.second.ledger.sendsOf(domain)).open).toEqual([])
})

test('a refusal of what was not sent is recorded without the lease, and nothing else', async () => {
  await using set = await openReplicas()
  const [refused, other] = [
    await enqueue(set.first.ledger, requestBy('admin')),
    await enqueue(set.first.ledger, requestBy('admin')),
  ]
  const error = new HttpError(412, 'precondition_failed', 'the zone has changed')

  await set.second.ledger.endChanges(domain, [
    { id: refused, status: 'refused', error, isUnsent: true },
    { id: other, status: 'confirmed' },
  ])

  const found = await Promise.all([refused, other].map((id) => set.second.ledger.find(id)))
  expect(found.map((change) => change?.status)).toEqual(['refused', 'queued'])
})

test('one idempotency key is one change, also for requests at the same time', async () => {
  await using set = await openReplicas()
  const request = requestBy('admin', { idempotency: { key: 'key', fingerprint: 'one' } })

  const ids = await Promise.all([set.first, set.second, set.first].map(({ ledger }) => enqueue(ledger, request)))

  expect(new Set(ids).size).toBe(1)
  const other = requestBy('admin', { idempotency: { key: 'key', fingerprint: 'another' } })
  await expect(enqueue(set.second.ledger, other)).rejects.toMatchObject({
    code: 'idempotency_key_reused',
  })
})

test('a change that is being sent is not put back into the queue', async () => {
  await using set = await openReplicas()
  const { ledger } = set.first
  const id = await enqueue(ledger, requestBy('admin'))
  const started = await begin(ledger, [id])

  const again = { id, status: 'queued' as const, isUnsent: true }
  await ledger.endChanges(domain, [again])
  const during = await ledger.find(id)
  await ledger.endSend(started, { state: 'unsent', unanswered: 0, changes: [] })
  await ledger.endChanges(domain, [again])

  expect([during?.status, (await ledger.find(id))?.status]).toEqual(['sending', 'queued'])
})

test('a send outdates what replicas have cached, before and after it', async () => {
  await using set = await openReplicas()
  const { first, second } = set
  const before = await second.ledger.zoneVersion(domain)

  const started = await first.ledger.startSend(send)
  const during = await second.ledger.zoneVersion(domain)
  const outcome = { state: 'settled' as const, unanswered: 0, changes: [] }
  const after = await first.ledger.endSend(started, outcome)

  expect(new Set([before, during, after]).size).toBe(3)
  expect(await second.ledger.zoneVersion(domain)).toBe(after)
})

test('a version that the database has lost is not given again', async () => {
  await using set = await openReplicas()
  const { first, second } = set
  const lost = await first.ledger.startSend(send)
  const known = await second.ledger.zoneVersion(domain)

  await first.ledger.endSend(lost, { state: 'settled', unanswered: 0, changes: [] })
  await set.postgres.query('delete from domain_service.zone_versions')
  const isLater = () => set.postgres.query('select 1 where domain_service.now_ms() > $1', [known])
  await expect.poll(isLater).toHaveLength(1)
  await first.ledger.startSend(send)

  expect(await second.ledger.zoneVersion(domain)).not.toBe(known)
})

test('a pruned history leaves the zones that a replica has just used', async () => {
  await using set = await openReplicas()
  await confirm(set.first.ledger, zoneOf(a), zoneOf(b))
  await set.postgres.query('delete from domain_service.changes')
  await set.postgres.query('delete from domain_service.sends')
  await set.postgres.query('delete from domain_service.known_zones')

  await deleteHistory(set.postgres, new Date())
  const young = await set.postgres.query('select digest from domain_service.zones')
  await set.postgres.query('update domain_service.zones set used_at = 0')
  await deleteHistory(set.postgres, new Date())
  const old = await set.postgres.query('select digest from domain_service.zones')

  expect([young.length, old.length]).toEqual([2, 0])
})
