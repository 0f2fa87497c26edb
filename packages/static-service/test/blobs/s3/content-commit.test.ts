import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { isProbe, keep, large, objectKeys } from '../../support/s3/uploads.ts'
import { digestOf } from '../../support/stored-contents.ts'

test('an object is garbage before it is sent, and becomes a content with the commit', async () => {
  await using contents = await openS3Contents()
  const seen = Promise.withResolvers<string[]>()
  contents.s3.fault = (call) => {
    if (isProbe(call)) return undefined
    seen.resolve(contents.keysIn('garbage'))
    return { kind: 'slow', ms: 100 }
  }

  await using kept = await keep(contents, large)
  const atPut = await seen.promise
  const before = await contents.keysIn('contents')
  await contents.commit(kept.digest)

  expect(atPut).toEqual(objectKeys(contents))
  expect(before).toEqual([])
  expect(await contents.keysIn('contents')).toEqual(atPut)
  expect(await contents.keysIn('garbage')).toEqual([])
  expect(atPut[0]).toMatch(new RegExp(`^files/${digestOf(large)}/[0-9a-f-]{36}$`))
})

test('an upload that no file refers to in the end is deleted after the grace, its temporary file goes at once', async () => {
  await using contents = await openS3Contents()
  {
    await using _kept = await keep(contents, large)
    expect(await contents.keysIn('garbage')).toHaveLength(1)
  }
  await contents.store.close()

  expect(await contents.keysIn('garbage')).toEqual(objectKeys(contents))
  const due = 'select from static_service.garbage where due_at <= now() + make_interval(hours => 1)'
  expect(await contents.postgres.query(due)).toHaveLength(1)
})

test('an upload that was swept is not committed', async () => {
  await using contents = await openS3Contents()
  await using kept = await keep(contents, large)
  await contents.makeDue()
  await (await contents.openReplica()).sweep.runFor([])

  await expect(contents.commit(kept.digest)).rejects.toThrow(`missing: ${kept.digest}`)
})

test('a content that another replica frees between upload and commit is taken back from the garbage', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  const keys = objectKeys(contents)
  await using _kept = await keep(contents, large)

  await contents.free(digest)
  await contents.commit(digest)

  expect(objectKeys(contents)).toEqual(keys)
  expect(await contents.keysIn('contents')).toEqual(keys)
  expect(await contents.keysIn('garbage')).toEqual([])
})

test.each([
  ['is being swept', "update static_service.garbage set due_at = now() + interval '5 minutes'"],
  ['was deleted', 'delete from static_service.garbage'],
])('a content that is freed between upload and commit, and %s, is found missing', async (_, sweep) => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  await using _kept = await keep(contents, large)

  await contents.free(digest)
  await contents.postgres.query(sweep)

  await expect(contents.commit(digest)).rejects.toThrow('missing')
})

test('a content that two replicas upload at once is committed once, the other object becomes garbage', async () => {
  await using contents = await openS3Contents()
  const other = await contents.openReplica()
  {
    await using kept = await keep(contents, large)
    await using second = other.draft()
    await second.write(Buffer.from(large))
    await second.seal()
    await second.keep()
    await contents.commit(kept.digest)
  }
  await other.close()

  expect(objectKeys(contents)).toHaveLength(2)
  expect(await contents.keysIn('contents')).toHaveLength(1)
  expect(await contents.keysIn('garbage')).toHaveLength(1)
})
