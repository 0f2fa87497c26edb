import { expect, onTestFinished, test, vi } from 'vitest'
import { Garbage } from '../../../src/blobs/disk/garbage.ts'

/** Garbage whose removals fail, or are put off, until `repair`. */
function open(fault: () => boolean) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let isRepaired = false
  const removed: string[] = []
  const errors: unknown[] = []
  const garbage = new Garbage({
    remove: async (digest) => {
      if (!isRepaired && !fault()) return false
      removed.push(digest)
      return true
    },
    onError: (error) => errors.push(error),
  })
  const repair = async () => {
    isRepaired = true
    await vi.advanceTimersByTimeAsync(1000)
    await garbage.settle()
  }
  return { garbage, removed, errors, repair }
}

const digests = Array.from({ length: 200 }, (_, at) => `digest ${at}`)

test('contents that cannot be removed are tried again, and one error is reported', async () => {
  const { garbage, removed, errors, repair } = open(() => {
    throw new Error('disk full')
  })

  garbage.collect(digests)
  await garbage.settle()
  await vi.advanceTimersByTimeAsync(3000)

  expect([removed, errors.map(String)]).toEqual([[], ['Error: disk full']])
  await repair()
  expect(removed.toSorted()).toEqual(digests.toSorted())
})

test('an error is not reported again because others wait for removals meanwhile', async () => {
  const { garbage, errors } = open(() => {
    throw new Error('disk full')
  })
  garbage.collect(['first'])
  for (let retries = 0; retries < 3; retries += 1) {
    await garbage.settle()
    await vi.advanceTimersByTimeAsync(1000)
  }

  expect(errors.map(String)).toEqual(['Error: disk full'])
  await garbage.close()
})

test('contents that may not be removed now are tried again without an error', async () => {
  const { garbage, removed, errors, repair } = open(() => false)

  garbage.collect(digests)
  await garbage.settle()

  expect(removed).toEqual([])
  await repair()
  expect([removed.toSorted(), errors]).toEqual([digests.toSorted(), []])
})

test('contents that are queued at any moment of a run are removed when it has settled', async () => {
  for (let turns = 0; turns < 20; turns += 1) {
    const { garbage, removed } = open(() => true)
    garbage.collect(['first'])
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()

    garbage.collect(['second'])
    await garbage.settle()

    expect(removed).toEqual(['first', 'second'])
    await garbage.close()
  }
})

test.each(['before', 'after'])('nothing is tried again after closing of what was queued %s it', async (when) => {
  const { garbage, removed, repair } = open(() => false)
  if (when === 'before') garbage.collect(digests)

  await garbage.close()

  if (when === 'after') garbage.collect(digests)
  await garbage.settle()
  await repair()
  expect(removed).toEqual([])
})
