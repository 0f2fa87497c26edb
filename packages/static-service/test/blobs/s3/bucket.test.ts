import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { readEnv } from '@domains-and-files/http'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Bucket } from '../../../src/blobs/s3/bucket.ts'
import { s3Config, s3Settings } from '../../../src/config.ts'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { startOwn } from '../../support/s3/s3-server.ts'
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

test.each([1, -1])('a store whose clock is %i hours ahead of ours takes and gives objects', async (hours) => {
  await using contents = await openS3Contents()
  contents.s3.clockAheadMs = hours * 3_600_000

  const digest = await contents.add(large)
  contents.s3.clockAheadMs = 0

  await using blob = await contents.store.open(digest)
  expect((await blob?.read(0, large.length))?.equals(large)).toBe(true)
})

test('a store whose clock begins to differ, or no longer does, is asked about objects', async () => {
  await using s3 = await startOwn()
  const bucket = await openBucket(s3.env)
  await bucket.put('files/x', large, hash('sha256', large))
  const sizes: unknown[] = []

  for (const hours of [1, 0, -1, 0]) {
    s3.clockAheadMs = hours * 3_600_000
    sizes.push((await bucket.head('files/x'))?.size)
  }

  expect(sizes).toEqual(Array(4).fill(large.length))
})

async function openBucket(variables: Record<string, string>) {
  const settings = s3Config(readEnv(z.object(s3Settings), variables), variables)
  if (!settings) throw new Error('the S3 server of the tests has no bucket')
  const bucket = await Bucket.open(settings)
  onTestFinished(() => bucket.close())
  return bucket
}

test('a store that closes idle connections soon has the whole time limit on connections that are used again', async () => {
  await using s3 = await startOwn()
  s3.keepAliveSeconds = 2
  const bucket = await openBucket(s3.env)
  const put = () => bucket.put('files/x', large, hash('sha256', large))
  await put()
  s3.fault = () => ({ kind: 'slow', ms: 1500 })

  await expect(put()).resolves.toBeDefined()
})

test('credentials that are replaced in their files are used by the next call', async () => {
  await using s3 = await startOwn()
  const folder = mkdtempSync(join(tmpdir(), 's3-credentials-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { AWS_ACCESS_KEY_ID: id = '', AWS_SECRET_ACCESS_KEY: secret = '', ...env } = s3.env
  const files = {
    AWS_ACCESS_KEY_ID_FILE: join(folder, 'id'),
    AWS_SECRET_ACCESS_KEY_FILE: join(folder, 'secret'),
  }
  writeFileSync(files.AWS_ACCESS_KEY_ID_FILE, id)
  writeFileSync(files.AWS_SECRET_ACCESS_KEY_FILE, secret)
  const bucket = await openBucket({ ...env, ...files })
  const put = () => bucket.put('files/x', large, hash('sha256', large))
  await put()

  s3.accessKey = 'another-access-key'
  await expect(put()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  writeFileSync(files.AWS_ACCESS_KEY_ID_FILE, 'another-access-key\n')

  await expect(put()).resolves.toBeDefined()
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
