import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { huge, isProbe, keep, large } from '../../support/s3/uploads.ts'

test.each(['put', 'create', 'part', 'complete'] as const)(
  'a response to %s that is lost, or a body that is cut, is made up for by a retry',
  async (operation) => {
    await using contents = await openS3Contents()
    const faults = ['lost-response', 'cut-request'] as const
    let at = 0
    contents.s3.fault = (call) => {
      const kind = call.operation === operation && !isProbe(call) ? faults[at] : undefined
      if (kind) at += 1
      return kind && { kind }
    }
    const content = operation === 'put' ? large : huge

    const digest = await contents.add(content)

    await using blob = await contents.store.open(digest)
    expect((await blob?.read(0, content.length))?.equals(content)).toBe(true)
    expect(at).toBe(2)
  },
)

test('a full store answers insufficient_storage, wrong credentials answer unavailable', async () => {
  await using contents = await openS3Contents()
  contents.s3.fault = () => ({ kind: 'status', status: 507 })
  await expect(contents.add(large)).rejects.toMatchObject({
    status: 507,
    code: 'insufficient_storage',
  })

  contents.s3.fault = () => ({ kind: 'status', status: 403 })
  await expect(contents.add(large)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
})

test.each(['put', 'create', 'part', 'complete'] as const)(
  'a store that is silent at %s counts as unavailable after the time limit, not seconds later',
  async (operation) => {
    await using contents = await openS3Contents()
    const replica = await contents.openReplica({ timeoutMs: 1000 })
    const silent = Promise.withResolvers<unknown>()
    contents.s3.fault = (call) => {
      if (call.operation !== operation || isProbe(call)) return undefined
      silent.resolve(call)
      return { kind: 'silent' }
    }
    const ended = new AbortController()
    const isLate = silent.promise.then(() => waitPatiently(3000, ended.signal))
    const upload = keep({ ...contents, store: replica }, operation === 'put' ? large : huge)

    await expect(Promise.race([upload, isLate])).rejects.toMatchObject({
      status: 503,
      code: 'unavailable',
    })
    ended.abort()
  },
)

/** Waits in steps: while the whole process stands still, only one of them passes. */
async function waitPatiently(milliseconds: number, signal: AbortSignal): Promise<string> {
  for (let waited = 0; waited < milliseconds && !signal.aborted; waited += 50) await wait(50)
  return 'late'
}

test('a connection that was idle has the time limit again when it is used', async () => {
  await using contents = await openS3Contents()
  const replica = await contents.openReplica({ timeoutMs: 300 })
  const upload = (content: Buffer) => keep({ ...contents, store: replica }, content)
  // A busy machine may exceed the limit.
  const untilKept = (): Promise<unknown> => upload(large).catch(untilKept)
  await untilKept()
  contents.s3.fault = () => ({ kind: 'silent' })

  await expect(upload(Buffer.concat([large, large]))).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })
})
