import { expect, onTestFinished, test, vi } from 'vitest'
import { StatusProbe } from '../../../src/catalog/postgres/postgres-catalog.ts'

const countersOf = (totalFiles: number, newestVersion: string) => ({
  ...{ totalFiles, totalSize: 0, pastSize: 0, storedSize: 0, versions: 1 },
  newestVersion,
})

test('a version that is recorded while the counters are read is the newest all the same', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const slow = Promise.withResolvers<ReturnType<typeof countersOf>>()
  const reads = [countersOf(0, '1'), slow.promise, countersOf(2, '3')]
  const probe = await StatusProbe.start(async () => (await reads.shift()) ?? countersOf(0, 'none'))

  await vi.advanceTimersByTimeAsync(2000)
  probe.addVersion('2')
  slow.resolve(countersOf(1, '1'))
  await vi.advanceTimersByTimeAsync(0)
  const after = probe.seen
  await vi.advanceTimersByTimeAsync(2000)

  expect(after).toMatchObject({ totals: { totalFiles: 1 }, newestVersion: '2' })
  expect(probe.seen).toMatchObject({ totals: { totalFiles: 2 }, newestVersion: '3' })
  await probe.close()
})
