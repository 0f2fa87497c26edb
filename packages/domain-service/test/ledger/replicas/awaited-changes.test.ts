import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailableError, type Postgres } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import { Ledger } from '../../../src/ledger/ledger.ts'
import { AwaitedChanges } from '../../../src/ledger/replicas/awaited-changes.ts'
import { Leases } from '../../../src/ledger/replicas/leases.ts'
import { makeDatabase, setDatabaseTime } from '../../support/databases.ts'
import { begin, domain, enqueue, requestBy } from '../../support/ledger.ts'

/** The ledger of a replica that holds the lease of the domain, and a change that it has accepted. */
async function openReplica(request = requestBy('admin')) {
  const stack = new AsyncDisposableStack()
  const { postgres } = stack.use(await makeDatabase())
  const onError = () => undefined
  const leases = new Leases({ sql: postgres, holder: 'this replica', ttlMs: 3_600_000, onError })
  stack.defer(() => leases.close())
  await leases.tryAcquire(domain)
  const ledger = new Ledger({ sql: postgres, leases })
  const { id } = await ledger.acceptAwaited(request)
  const renew = (connection: Pick<Postgres, 'get'>, onExpired = () => {}) => {
    const awaited = new AwaitedChanges(connection)
    stack.defer(() => awaited.close())
    awaited.add(id, onExpired)
    return awaited
  }
  const ready = async () => (await ledger.ready(domain)).ready.map((change) => change.id)
  const status = async () => (await ledger.find(id))?.status
  return {
    postgres,
    ledger,
    id,
    renew,
    ready,
    status,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a change that somebody waits for can be begun however late', async () => {
  await using replica = await openReplica()
  const { id, ledger } = replica
  await setDatabaseTime(replica.postgres, 5_000, 'lease_ms')
  const late = await replica.ready()

  replica.renew(replica.postgres)

  expect(late).toEqual([])
  await expect.poll(replica.ready).toEqual([id])
  expect((await begin(ledger, [id])).gone.size).toBe(0)
})

test('no replica begins a change after its client was told that its outcome is unknown', async () => {
  await using replica = await openReplica()
  const awaited = replica.renew(replica.postgres)
  expect(await replica.ready()).toEqual([replica.id])

  await Promise.all([awaited.expire(replica.id), awaited.expire(replica.id)])

  expect(await replica.ready()).toEqual([])
  expect((await begin(replica.ledger, [replica.id])).gone).toEqual(new Set([replica.id]))
})

test('a renewal under way, which extends its change, ends before the client is told', async () => {
  const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()]
  const get = () => {
    begun.resolve()
    return answer.promise
  }
  const awaited = new AwaitedChanges({ get })
  awaited.add(1, () => {})
  await begun.promise
  // Every wait has passed.
  let now = performance.now()
  using _ = vi.spyOn(performance, 'now').mockImplementation(() => (now += 60_000))

  const told = awaited.expire(1).then(() => 'told')
  const first = await Promise.race([told, sleep(50, 'renewed')])
  answer.resolve(undefined)

  expect([first, await told]).toEqual(['renewed', 'told'])
  await awaited.close()
})

test('a change that nobody waits for any more cannot be begun, and is cancelled', async () => {
  await using replica = await openReplica(requestBy('admin', { idempotency: { key: 'key', fingerprint: 'one' } }))
  const { id, ledger } = replica
  await setDatabaseTime(replica.postgres, 5_000, 'lease_ms')
  await ledger.recover()
  const { gone } = await begin(ledger, [id])
  const late = [await replica.ready(), [...gone], await replica.status()]

  await setDatabaseTime(replica.postgres, 31_000, 'lease_ms')
  await ledger.recover()

  expect(late).toEqual([[], [id], 'queued'])
  expect(await replica.status()).toBe('cancelled')
  const again = requestBy('admin', { idempotency: { key: 'key', fingerprint: 'another' } })
  expect((await ledger.acceptAwaited(again)).id).not.toBe(id)
})

test('an asynchronous change waits however long', async () => {
  await using replica = await openReplica()
  const { ledger, postgres } = replica
  const id = await enqueue(ledger, requestBy('admin'))

  await setDatabaseTime(postgres, 3_600_000, 'lease_ms')
  await ledger.recover()

  expect(await replica.ready()).toEqual([id])
})

test('renewals whose responses are lost make no change last longer than its client waits', async () => {
  await using replica = await openReplica()
  const { postgres } = replica
  const { promise: expired, resolve } = Promise.withResolvers<void>()
  let answers = 1
  // The first renewal tells the time of the database.
  const get: Postgres['get'] = async (statement) => {
    const row = await postgres.get<never>(statement)
    if (answers-- > 0) return row
    throw new DatabaseUnavailableError(undefined)
  }

  replica.renew({ get }, resolve)
  const before = await replica.ready()
  await expired

  expect(before).toEqual([replica.id])
  expect(await replica.ready()).toEqual([])
})
