import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openS3Contents, type S3Contents } from '../../support/s3/s3-contents.ts'
import { digestOf } from '../../support/stored-contents.ts'

const large = randomBytes(100_000)
const huge = randomBytes(20_000_000)

const objectKeys = ({ s3 }: S3Contents) =>
  [...s3.store.objects.keys()].filter((key) => key !== 'files/probe').sort()

async function keep({ store }: S3Contents, content: Buffer) {
  const draft = store.draft()
  await draft.write(content)
  await draft.seal()
  const { digest } = await draft.keep()
  return { digest, [Symbol.asyncDispose]: () => draft[Symbol.asyncDispose]() }
}

test('small contents stay in PostgreSQL: S3 is not called', async () => {
  await using contents = await openS3Contents()

  const digest = await contents.add('small')
  await using blob = await contents.store.open(digest)

  expect((await blob?.read(0, 5))?.toString()).toBe('small')
  expect(contents.s3.calls).toEqual([])
})

test('an intent is recorded before the object is sent, and becomes a content with the commit', async () => {
  await using contents = await openS3Contents()
  const seen = Promise.withResolvers<string[]>()
  contents.s3.fault = ({ operation }) => {
    if (operation === 'put') seen.resolve(contents.keysIn('intents'))
    return { kind: 'slow', ms: 100 }
  }

  await using kept = await keep(contents, large)
  const atPut = await seen.promise
  const before = await contents.keysIn('contents')
  await contents.commit(kept.digest)

  expect(atPut).toEqual(objectKeys(contents))
  expect(before).toEqual([])
  expect(await contents.keysIn('contents')).toEqual(atPut)
  expect(await contents.keysIn('intents')).toEqual([])
  expect(atPut[0]).toMatch(new RegExp(`^files/${digestOf(large)}/[0-9a-f-]{36}$`))
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

test('an object without references is deleted after the grace, and stays readable until then', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  await using blob = await contents.store.open(digest)
  await contents.store.putForm(digest, 'br', randomBytes(50_000))

  await contents.free(digest)
  await contents.store.sweep.run()

  expect(objectKeys(contents)).toHaveLength(2)
  expect((await blob?.read(0, large.length))?.equals(large)).toBe(true)
  await contents.makeDue('garbage')
  await contents.store.sweep.run()
  expect(objectKeys(contents)).toEqual([])
  expect(await contents.keysIn('garbage')).toEqual([])
})

test('nothing is deleted from the bucket while a backup runs', async () => {
  await using contents = await openS3Contents()
  await contents.free(await contents.add(large))
  await contents.makeDue('garbage')
  await contents.postgres.query(
    "insert into static_service.backups values ('a backup', now() + interval '1 minute')",
  )

  await contents.store.sweep.run()

  expect(objectKeys(contents)).toHaveLength(1)
})

test('an object that a content refers to is not deleted even if it is listed as garbage', async () => {
  await using contents = await openS3Contents()
  await contents.add(large)
  const [key] = objectKeys(contents)
  await contents.postgres.query('insert into static_service.garbage values ($1, null, now())', [
    key,
  ])

  await contents.store.sweep.run()

  expect(objectKeys(contents)).toEqual([key])
})

test('an object that could not be deleted stays garbage, and another sweep deletes it', async () => {
  await using contents = await openS3Contents()
  await contents.free(await contents.add(large))
  await contents.makeDue('garbage')
  contents.s3.fault = () => ({ kind: 'status', status: 503 })

  await contents.store.sweep.run()

  expect(await contents.keysIn('garbage')).toHaveLength(1)
  expect(contents.errors).toMatchObject([{ code: 'unavailable' }])
  contents.s3.fault = () => undefined
  await contents.makeDue('garbage')
  await contents.store.sweep.run()
  expect(objectKeys(contents)).toEqual([])
})

test('an upload that no file refers to in the end becomes garbage, its temporary file goes at once', async () => {
  await using contents = await openS3Contents()
  {
    await using _kept = await keep(contents, large)
    expect(await contents.keysIn('intents')).toHaveLength(1)
  }
  await contents.store.close()

  expect(await contents.keysIn('intents')).toEqual([])
  expect(await contents.keysIn('garbage')).toEqual(objectKeys(contents))
  expect(contents.store.busy).toBe(0)
})

test('the intent of a dead upload becomes garbage when it expires, with its multipart upload', async () => {
  await using contents = await openS3Contents()
  const dead = await contents.openReplica()
  const draft = dead.draft()
  await draft.write(huge)
  await draft.seal()
  contents.s3.fault = ({ operation }) => (operation === 'complete' ? { kind: 'silent' } : undefined)
  draft.keep().catch(() => undefined)
  await expect
    .poll(() => contents.s3.calls.some(({ operation }) => operation === 'complete'), {
      timeout: 40_000,
    })
    .toBe(true)

  await contents.store.sweep.run()
  expect(await contents.keysIn('intents')).toHaveLength(1)
  await contents.makeDue('intents')
  await contents.store.sweep.run()
  await contents.makeDue('garbage')
  await contents.store.sweep.run()

  expect(await contents.keysIn('intents')).toEqual([])
  expect(await contents.keysIn('garbage')).toEqual([])
  expect(contents.s3.store.uploads.size).toBe(0)
})

test('an upload whose intent was swept is not committed', async () => {
  await using contents = await openS3Contents()
  await using kept = await keep(contents, large)
  await contents.makeDue('intents')
  await (await contents.openReplica()).sweep.run()

  await expect(contents.commit(kept.digest)).rejects.toThrow(`missing: ${kept.digest}`)
})

test('a content that another replica frees between upload and commit is found missing', async () => {
  await using contents = await openS3Contents()
  const digest = await contents.add(large)
  await using _kept = await keep(contents, large)

  await contents.free(digest)

  await expect(contents.commit(digest)).rejects.toThrow('missing')
})

test('a content that two replicas upload at once is committed once, the other object becomes garbage', async () => {
  await using contents = await openS3Contents()
  const other = await contents.openReplica()
  {
    await using kept = await keep(contents, large)
    await using second = other.draft()
    await second.write(large)
    await second.seal()
    await second.keep()
    await contents.commit(kept.digest)
  }
  await other.close()

  expect(objectKeys(contents)).toHaveLength(2)
  expect(await contents.keysIn('contents')).toHaveLength(1)
  expect(await contents.keysIn('garbage')).toHaveLength(1)
})

test('a large content is sent in parts, and a failed one leaves none behind', async () => {
  await using contents = await openS3Contents()
  const operations = () => contents.s3.calls.map(({ operation }) => operation)
  await contents.add(huge)
  expect(operations()).toEqual(['create', 'part', 'part', 'part', 'complete'])

  contents.s3.fault = ({ operation }) =>
    operation === 'complete' ? { kind: 'status', status: 500 } : undefined
  await expect(contents.add(Buffer.concat([huge, large]))).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })

  expect(contents.s3.store.uploads.size).toBe(0)
  await expect.poll(() => contents.keysIn('garbage')).toHaveLength(1)
})

test.each(['put', 'create', 'part', 'complete'] as const)(
  'a response to %s that is lost, or a body that is cut, is made up for by a retry',
  async (operation) => {
    await using contents = await openS3Contents()
    const faults = ['lost-response', 'cut-request'] as const
    let at = 0
    contents.s3.fault = (call) => {
      const kind = call.operation === operation ? faults[at] : undefined
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

test('temporary files are removed at the start and after each upload', async () => {
  await using contents = await openS3Contents()
  await contents.add(large)
  await contents.add(huge)
  contents.s3.fault = () => ({ kind: 'status', status: 500 })
  await expect(contents.add(randomBytes(40_000))).rejects.toMatchObject({ code: 'unavailable' })

  expect(await readdir(contents.tmp)).toEqual([])
})

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

test('without an S3 server uploads fail at once, health says so, and both recover', async () => {
  await using contents = await openS3Contents()
  const status = () => contents.store.check().s3.status
  await contents.s3.pause()

  await expect(contents.add(large)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await expect.poll(status, { timeout: 40_000 }).toBe('unavailable')
  await contents.s3.resume()
  await expect.poll(status, { timeout: 40_000 }).toBe('ok')
  await contents.add(large)
})

test('a silent S3 server counts as unavailable after the time limit', async () => {
  await using contents = await openS3Contents()
  const replica = await contents.openReplica({ timeoutMs: 300 })
  contents.s3.fault = () => ({ kind: 'silent' })

  await expect(keep({ ...contents, store: replica }, large)).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })
})
