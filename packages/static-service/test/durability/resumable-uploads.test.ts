import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/maintenance/check.ts'
import { type Program, run } from '../support/program.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { filesBelow } from '../support/stored-contents.ts'
import { offsetOf, offsetStream, tus, tusHeaders, urlOf } from '../support/tus.ts'

// UPLOAD_INTERRUPTIONS=200 is the long form (npm run faults): so many cuts of the line, and so many kills.
const interruptions = Number(process.env.UPLOAD_INTERRUPTIONS ?? 20)
const sharedInterruptions = Math.ceil(interruptions / 4)

interface Interruption {
  kind: 'cut' | 'kill'
  /** Bytes of the file; bytes of the first PATCH; those sent before the interruption: the last as shares of those before. */
  size: number
  announced: number
  sent: number
  /** Turns of the event loop before it, so that the service is in the middle of something. */
  turns: number
}

const interruption = fc.record({
  size: fc.oneof(fc.nat(70_000), fc.nat(12_000_000)).map((size) => size + 1),
  announced: fc.double({ min: 0, max: 1, noNaN: true }),
  sent: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  turns: fc.nat(400),
})

const sampleOf = (count: number): Interruption[] =>
  fc
    .sample(interruption, { numRuns: 2 * count, seed: Number(process.env.RANDOM_SEED ?? 1) })
    .map((each, at) => ({ ...each, kind: at % 2 === 0 ? 'cut' : 'kill' }))

test(`after ${interruptions} cuts of the line and ${interruptions} kills every file has its bytes`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-resumed-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  let program = await run(dataDir)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  const kill = async () => {
    await program.kill()
    program = await run(dataDir)
  }

  for (const [at, each] of sampleOf(interruptions).entries())
    await uploadInterrupted(`f${at}.bin`, each, { next: () => program, kill, token })

  await program.kill()
  program = await run(dataDir)
  expect(filesBelow(join(dataDir, 'uploads'))).toEqual([])
  expect(filesBelow(join(dataDir, 'tmp'))).toEqual([])
  await expect.poll(() => check({ DATA_DIR: dataDir })).toMatchObject({ damages: [], orphans: [] })
}, 3_600_000)

test(`the same on PostgreSQL and S3, with every request at another one of three replicas`, async () => {
  await using stores = await startSharedStores()
  await using replicas = await Replicas.start(stores, 3)
  const token = await replicas.next().logIn()
  const kill = () => replicas.killLast()

  for (const [at, each] of sampleOf(sharedInterruptions).entries())
    await uploadInterrupted(`f${at}.bin`, each, { next: () => replicas.next(), kill, token })

  const [left] = await stores.query<{ unfinished: number; intents: number; uses: number }>(
    `select (select count(*) from static_service.uploads where outcome is null)::int unfinished,
       (select count(*) from static_service.intents)::int intents,
       (select count(*) from static_service.contents where coding = 0)::int uses`,
  )
  // What a replica had begun when it was killed expires.
  expect(left?.unfinished).toBe(0)
  expect(left?.uses).toBe(2 * sharedInterruptions)
}, 3_600_000)

interface Context {
  /** The program that gets the next request. */
  next: () => Program
  /** Kills the program that got the last one, and starts another one. */
  kill: () => Promise<void>
  token: string
}

// Continues as a client does: where HEAD says.
async function uploadInterrupted(
  path: string,
  { kind, size, announced, sent, turns }: Interruption,
  { next, kill, token }: Context,
) {
  const authorization = `Bearer ${token}`
  const { create, patch, head } = tus({
    call: (method, url, { headers, body } = {}) =>
      next().ask({ method, path: url, body, headers: { authorization, ...headers } }),
  })
  const bytes = randomBytes(size)
  const url = urlOf(await create({ path, overwrite: 'false' }, size))
  const first = Math.ceil(size * announced)
  const { status } = await patch(url, 0, bytes.subarray(0, first))
  expect(status).toBe(204)

  if (first < size) {
    const { port } = next()
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    const end = first + Math.floor((size - first) * sent)
    socket.write(
      `PATCH ${url} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
        `tus-resumable: ${tusHeaders['tus-resumable']}\r\ncontent-type: ${offsetStream}\r\n` +
        `upload-offset: ${first}\r\ncontent-length: ${size - first}\r\n\r\n`,
    )
    const isWritten = new Promise<void>((resolve) =>
      socket.write(bytes.subarray(first, end), () => resolve()),
    )
    await Promise.race([isWritten, once(socket, 'close')])
    for (let turn = 0; turn < turns; turn += 1)
      await new Promise<void>((resolve) => setImmediate(resolve))
    if (kind === 'kill') await kill()
    socket.destroy()
  }

  const known = await head(url)
  expect(offsetOf(known)).toBeGreaterThanOrEqual(Math.min(first, size - 1))
  const done = await finish()
  expect(done.headers['content-location']).toBe(`/api/files/${path}`)
  const served = await next().ask({ method: 'GET', path: `/static/${path}`, headers: {} })
  expect(served.bytes.equals(bytes)).toBe(true)

  async function finish() {
    for (;;) {
      const offset = offsetOf(await head(url))
      const answer = await patch(url, offset, bytes.subarray(offset))
      // The interrupted request may still be under way.
      if (answer.status !== 423 && answer.status !== 409) return answer
    }
  }
}

class Replicas implements AsyncDisposable {
  readonly #stores: SharedStores
  readonly #folder = mkdtempSync(join(tmpdir(), 'static-replicas-'))
  #programs: Program[] = []
  #turn = 0
  #started = 0

  static async start(stores: SharedStores, count: number): Promise<Replicas> {
    const replicas = new Replicas(stores)
    for (let at = 0; at < count; at += 1) replicas.#programs.push(await replicas.#run())
    return replicas
  }

  private constructor(stores: SharedStores) {
    this.#stores = stores
  }

  next(): Program {
    this.#turn += 1
    const program = this.#programs[this.#turn % this.#programs.length]
    if (!program) throw new Error('no replica runs')
    return program
  }

  /** What it had begun is taken over at once, as if ten seconds had passed. */
  async killLast(): Promise<void> {
    const at = this.#turn % this.#programs.length
    await this.#programs[at]?.kill()
    this.#programs[at] = await this.#run()
    await this.#stores.query('update static_service.uploads set writer_until = 0')
  }

  #run(): Promise<Program> {
    this.#started += 1
    const env = { ...this.#stores.env, DATABASE_TIMEOUT_MS: '60000', S3_TIMEOUT_MS: '60000' }
    return run(join(this.#folder, String(this.#started)), env)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#programs) await program.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
