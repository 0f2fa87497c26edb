import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { huge, keep, large } from '../../support/s3/uploads.ts'

test('a large content is sent in parts, and a failed one leaves none behind', async () => {
  await using contents = await openS3Contents()
  const operations = () => contents.s3.calls.map(({ operation }) => operation)
  await contents.add(huge)
  expect(operations()).toEqual(['create', 'part', 'part', 'part', 'complete'])

  contents.s3.fault = ({ operation }) => (operation === 'complete' ? { kind: 'status', status: 500 } : undefined)
  await expect(contents.add(Buffer.concat([huge, large]))).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })

  await expect.poll(() => contents.s3.store.uploads.size).toBe(0)
  await expect.poll(() => contents.keysIn('garbage')).toHaveLength(1)
})

test('a multipart upload that cannot be recorded is aborted', async () => {
  await using contents = await openS3Contents()
  await contents.postgres.query('alter table static_service.garbage add check (upload_id is null) not valid')

  await expect(contents.add(huge)).rejects.toThrow()

  const operations = () => contents.s3.calls.map(({ operation }) => operation)
  await expect.poll(operations).toEqual(['create', 'abort'])
  await expect.poll(() => contents.s3.store.uploads.size).toBe(0)
})

test('the client of a failed upload does not wait until its parts are discarded', async () => {
  await using contents = await openS3Contents()
  contents.s3.fault = ({ operation }) => {
    if (operation === 'part') return { kind: 'status', status: 403 }
    return operation === 'abort' ? { kind: 'silent' } : undefined
  }
  const replica = await contents.openReplica({ timeoutMs: 600_000 })

  await expect(keep({ ...contents, store: replica }, huge)).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })
})

test('the saved tail of an upload can be staged again, after its memory was written', async () => {
  await using contents = await openS3Contents()
  const saved = { size: large.length, state: null, tail: Buffer.from(large), epoch: 0 }
  await using blob = contents.store.resume('', saved, async () => undefined)
  await using first = await blob.stage(undefined)
  const digest = first.hash?.digest
  await using second = await blob.stage(undefined)
  expect(second.hash).toMatchObject({ size: large.length, digest })
})
