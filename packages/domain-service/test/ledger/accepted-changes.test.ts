import { type FileHandle, open } from 'node:fs/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openLedger, requestBy } from '../support/ledger.ts'

/** Holds the next flush of a file until it is released. */
async function holdFlush() {
  const handle = await open(import.meta.filename)
  const flush = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
  await handle.close()
  onTestFinished(() => flush.mockRestore())
  const held = Promise.withResolvers<void>()
  flush.mockReturnValueOnce(held.promise)
  return { flush, release: held.resolve }
}

test('asynchronous changes that come together share a flush, and none is acknowledged before it', async () => {
  const { ledger } = openLedger()
  const { flush, release } = await holdFlush()
  const acknowledged: number[] = []

  const accepts = Array.from({ length: 50 }, async (_, n) => {
    const { id } = await ledger.accept(requestBy(`author${n}`))
    acknowledged.push(id)
  })
  await expect.poll(() => ledger.countQueued()).toMatchObject({ queued: 50 })
  const early = acknowledged.length
  release()
  await Promise.all(accepts)

  expect([early, acknowledged.length]).toEqual([0, 50])
  expect(flush).toHaveBeenCalledTimes(2)
})
