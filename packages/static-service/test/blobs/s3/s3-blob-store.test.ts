import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { huge, keep, large, objectKeys } from '../../support/s3/uploads.ts'

test('small contents stay in PostgreSQL: S3 is not called', async () => {
  await using contents = await openS3Contents()

  const digest = await contents.add('small')
  await using blob = await contents.store.open(digest)

  expect((await blob?.read(0, 5))?.toString()).toBe('small')
  expect(contents.s3.calls).toEqual([])
})

test('an equal content is not sent again, and a content that comes back gets a new key', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  const [first] = objectKeys(contents)
  {
    await using _kept = await keep(contents, large)
  }
  expect(contents.s3.calls.map(({ operation }) => operation)).toEqual(['put'])

  await contents.free(digest)
  await contents.add(large)

  expect(objectKeys(contents)).toHaveLength(2)
  expect(await contents.keysIn('garbage')).toEqual([first])
  expect(new Set(contents.s3.store.everStored).size).toBe(contents.s3.store.everStored.length)
})

test('temporary files are removed at the start and after each upload', async () => {
  await using contents = await openS3Contents()
  await contents.add(large)
  await contents.add(huge)
  contents.s3.fault = () => ({ kind: 'status', status: 500 })
  await expect(contents.add(randomBytes(40_000))).rejects.toMatchObject({ code: 'unavailable' })

  expect(await readdir(contents.tmp)).toEqual([])
})

test('without an S3 server uploads fail at once, health says so, and both recover', async () => {
  await using contents = await openS3Contents()
  const status = () => contents.store.check().s3.status
  await contents.s3.pause()

  await expect(contents.add(large)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await expect.poll(status).toBe('unavailable')
  await contents.s3.resume()
  await expect.poll(status).toBe('ok')
  await contents.add(large)
})

test('health reports a silent S3 server long before the time limit of other calls', async () => {
  await using contents = await openS3Contents()
  const replica = await contents.openReplica({ timeoutMs: 600_000 })

  contents.s3.fault = ({ operation }) => (operation === 'head' ? { kind: 'silent' } : undefined)

  await expect.poll(() => replica.check().s3.status).toBe('unavailable')
})
