import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { huge, large, objectKeys } from '../../support/s3/uploads.ts'

test('an object without references is deleted after the grace, and stays readable until then', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  await using blob = await contents.store.open(digest)
  await contents.store.putForm(digest, 'br', randomBytes(50_000))

  await contents.free(digest)
  await contents.store.sweep.runFor([])

  expect(objectKeys(contents)).toHaveLength(2)
  expect((await blob?.read(0, large.length))?.equals(large)).toBe(true)
  await contents.makeDue()
  await contents.store.sweep.runFor([])
  expect(objectKeys(contents)).toEqual([])
  expect(await contents.keysIn('garbage')).toEqual([])
})

test('nothing is deleted from the bucket while a backup runs', async () => {
  await using contents = await openS3Contents()
  await contents.free(await contents.add(large))
  await contents.makeDue()
  await contents.postgres.query("insert into static_service.backups values ('a backup', now() + interval '1 minute')")

  await contents.store.sweep.runFor([])

  expect(objectKeys(contents)).toHaveLength(1)
})

test('an object that a content refers to is not deleted even if it is listed as garbage', async () => {
  await using contents = await openS3Contents()
  await contents.add(large)
  const [key] = objectKeys(contents)
  await contents.postgres.query('insert into static_service.garbage values ($1, null, now())', [key])

  await contents.store.sweep.runFor([])

  expect(objectKeys(contents)).toEqual([key])
})

test('an object that could not be deleted stays garbage, and another sweep deletes it', async () => {
  await using contents = await openS3Contents()
  await contents.free(await contents.add(large))
  await contents.makeDue()
  contents.s3.fault = ({ operation }) => (operation === 'delete' ? { kind: 'status', status: 503 } : undefined)

  await contents.store.sweep.runFor([])

  expect(await contents.keysIn('garbage')).toHaveLength(1)
  expect(contents.errors).toMatchObject([{ code: 'unavailable' }])
  contents.s3.fault = () => undefined
  await contents.makeDue()
  await contents.store.sweep.runFor([])
  expect(objectKeys(contents)).toEqual([])
})

test('objects that the store refuses to delete do not hold up the others', async () => {
  await using contents = await openS3Contents()
  await contents.postgres.query(`insert into static_service.garbage
    select 'files/' || n, null, now() - make_interval(secs => n) from generate_series(1, 100) n`)
  const refused = ['files/100', 'files/20', 'files/60']
  contents.s3.fault = ({ key }) => (refused.includes(key) ? { kind: 'status', status: 403 } : undefined)

  await contents.store.sweep.runFor([])

  expect(await contents.keysIn('garbage')).toEqual(refused)
  expect(contents.errors).toMatchObject([{ code: 'unavailable' }])
})

test('a dead upload is deleted when it is due, with its multipart upload', async () => {
  await using contents = await openS3Contents()
  const dead = await contents.openReplica({ timeoutMs: 600_000 })
  const draft = dead.draft()
  await draft.write(Buffer.from(huge))
  await draft.seal()
  contents.s3.fault = ({ operation }) => (operation === 'complete' ? { kind: 'silent' } : undefined)
  draft.keep().catch(() => undefined)
  await expect.poll(() => contents.s3.calls.some(({ operation }) => operation === 'complete')).toBe(true)

  await contents.store.sweep.runFor([])
  expect(await contents.keysIn('garbage')).toHaveLength(1)
  await contents.makeDue()
  await contents.store.sweep.runFor([])

  expect(await contents.keysIn('garbage')).toEqual([])
  expect(contents.s3.store.uploads.size).toBe(0)
})
