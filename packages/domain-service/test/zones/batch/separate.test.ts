import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import type { QueuedChange } from '../../../src/ledger/ledger.ts'
import { type Attempt, separate } from '../../../src/zones/batch/separate.ts'
import { requestBy, zoneOf } from '../../support/ledger.ts'

const count = 100
const writes: QueuedChange[] = Array.from({ length: count }, (_, n) => ({
  request: requestBy(`author${n}`),
  id: n + 1,
  isAsync: false,
}))

/** Sends to a registrar that refuses these writes. Each send is read back: two calls. */
async function sendAll(bad: Set<number>, { named = false, busyAt = -1 } = {}) {
  const done: number[] = []
  const refused: number[] = []
  let calls = 1 // The first read.
  const indexOf = (write: QueuedChange) => writes.indexOf(write)
  const steps = {
    attempt: async (group: QueuedChange[]): Promise<Attempt> => {
      const faulty = group.filter((write) => bad.has(indexOf(write)))
      calls += 2
      if (calls === busyAt) return 'failed'
      if (faulty.length === 0) done.push(...group.map(indexOf))
      if (faulty.length === 0) return 'done'
      const error = new HttpError(422, 'registrar_rejected', 'refused')
      return { writes: group, named: named ? faulty.slice(0, 1) : [], error, zone: zoneOf() }
    },
    refuse: async (write: QueuedChange) => {
      refused.push(indexOf(write))
    },
  }
  const refusal = await steps.attempt(writes)
  if (typeof refusal === 'object') await separate(refusal, steps)
  return { done, refused, calls }
}

test('wherever the one refused write is, the others are done in their order, within 20 calls', async () => {
  for (let bad = 0; bad < count; bad++) {
    const { done, refused, calls } = await sendAll(new Set([bad]))

    expect(refused).toEqual([bad])
    expect(done).toEqual(writes.map((_, n) => n).filter((n) => n !== bad))
    expect(calls).toBeLessThanOrEqual(19)
  }
})

test('a write is refused only for what the registrar said of it, not because the others could not be sent', async () => {
  const { done, refused } = await sendAll(new Set([7]), { busyAt: 5 })

  expect(refused).toEqual([])
  expect(done).toEqual(writes.map((_, n) => n).slice(50))
})

test('a write that the registrar names costs one call more', async () => {
  const { done, refused, calls } = await sendAll(new Set([57]), { named: true })

  expect([done.length, refused, calls]).toEqual([99, [57], 5])
})

test('several refused writes are each found', async () => {
  const bad = [0, 1, 49, 50, 99]

  const { done, refused } = await sendAll(new Set(bad))

  expect(refused.toSorted((a, b) => a - b)).toEqual(bad)
  expect(done).toHaveLength(95)
})

test('where all are refused, none is done', async () => {
  const { done, refused } = await sendAll(new Set(writes.keys()))

  expect([done, refused.length]).toEqual([[], 100])
})
