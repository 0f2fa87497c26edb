import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { expect, onTestFinished, test } from 'vitest'
import { patient } from '../../../../test/support/everything.ts'
import { type Program, run } from '../support/program.ts'
import { startSharedStores } from '../support/shared-stores.ts'
import { boundary } from '../support/start.ts'

const mebibyte = 1_048_576
const size = Number(process.env.LARGE_UPLOAD_BYTES ?? 160 * mebibyte)

test(`an upload of ${size / mebibyte} MiB takes less than 64 MiB of memory`, async () => {
  await expectBoundedMemory({}, 64 * mebibyte)
})

// Three parts of 8 MiB, and code that the first upload in parts loads.
test(`an upload of ${size / mebibyte} MiB to S3 takes less than 100 MiB of memory`, async () => {
  await using stores = await startSharedStores()
  await expectBoundedMemory(stores.env, 100 * mebibyte)
  expect([...stores.s3.store.objects.values()].some((object) => object.size === size)).toBe(true)
})

async function expectBoundedMemory(env: Record<string, string>, maxBytes: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-large-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const program = await run(dataDir, { MAX_UPLOAD_BYTES: String(size), ...patient, ...env })
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  await upload(program, token, mebibyte)
  const before = readMemory(program, 'VmRSS')
  writeFileSync(`/proc/${program.child.pid}/clear_refs`, '5') // Peaks are counted from now on.

  const { status, body, digest } = await upload(program, token, size)

  expect([status, body]).toMatchObject([200, { size, sha256: digest }])
  const raised = readMemory(program, 'VmHWM') - before
  process.stderr.write(`raised by ${(raised / mebibyte).toFixed(1)} MiB\n`)
  expect(raised).toBeLessThan(maxBytes)
}

async function upload(program: Program, token: string, bytes: number) {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(65_536, 'what a large file is made of; ')
  const answered = Promise.withResolvers<{ status: number | undefined; body: unknown }>()
  const sending = request(
    {
      port: program.port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/api/files/upload',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': `multipart/form-data; boundary=${boundary}`,
      },
    },
    async (response) => answered.resolve({ status: response.statusCode, body: await json(response) }),
  )
  const form = function* () {
    yield `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`
    for (let sent = 0; sent < bytes; sent += chunk.length) {
      hash.update(chunk)
      yield chunk
    }
    yield `\r\n--${boundary}--\r\n`
  }
  await pipeline(Readable.from(form(), { objectMode: false }), sending)
  return { ...(await answered.promise), digest: hash.digest('hex') }
}

function readMemory(program: Program, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${program.child.pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
}
