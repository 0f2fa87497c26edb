import { expect, test } from 'vitest'
import { type Domain, readDomain } from '../../src/dns/domain-name.ts'
import { maxQueued, WriteQueue } from '../../src/zones/write-queue.ts'
import { requestBy } from '../support/ledger.ts'

const domainOf = (name: string): Domain => {
  const domain = readDomain(name)
  if (typeof domain === 'string') throw new Error(domain)
  return domain
}

/** A queue whose ledger does not answer, so that every write waits. */
function openQueue() {
  const acceptAwaited = () => new Promise(() => undefined)
  return new WriteQueue({ ledger: { acceptAwaited } } as never) // The only method that waiting writes need.
}

test('beyond 1,000 queued writes of one domain further ones get 503 at once', async () => {
  const queue = openQueue()
  const write = (name: string) => queue.write(domainOf(name), requestBy('admin'))
  for (let n = 0; n < maxQueued; n++) void write('example.com')

  await expect(write('example.com')).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
    headers: { 'retry-after': '10' },
  })
  expect(queue.waiting).toBe(1_000)

  void write('example.net')
  expect(queue.waiting).toBe(1_001)
})

test('beyond 96 MiB of queued writes of one domain further ones get 503, until they are done', async () => {
  const queue = openQueue()
  const address = 'x'.repeat(1024 * 1024)
  const record = { name: 'big', type: 'TXT', address }
  const edit = { kind: 'ensure' as const, present: [record], absent: [] }
  const write = (name: string) => queue.write(domainOf(name), requestBy('admin', { edit }))
  for (let n = 0; n < 95; n++) void write('example.com')

  await expect(write('example.com')).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  for (let n = 0; n < 32; n++) void write('example.net')
  await expect(write('example.org')).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  expect(queue.waiting).toBe(127)
})
