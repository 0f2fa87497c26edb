import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { sampleInterruptions, uploadInterrupted } from '../support/interrupted-uploads.ts'
import { type Program, run } from '../support/program.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { filesBelow } from '../support/stored-contents.ts'

// UPLOAD_INTERRUPTIONS=200 is the long form (npm run faults): so many cuts of the line, and so many kills.
const interruptions = Number(process.env.UPLOAD_INTERRUPTIONS ?? 4)
const sharedInterruptions = Math.ceil(interruptions / 4)

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

  for (const [at, each] of sampleInterruptions(interruptions).entries())
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

  for (const [at, each] of sampleInterruptions(sharedInterruptions).entries())
    await uploadInterrupted(`f${at}.bin`, each, { next: () => replicas.next(), kill, token })

  const [left] = await stores.query<{ unfinished: number; uses: number }>(
    `select (select count(*) from static_service.uploads where outcome is null)::int unfinished,
       (select count(*) from static_service.contents where coding = 0)::int uses`,
  )
  expect(left?.unfinished).toBe(0)
  expect(left?.uses).toBe(2 * sharedInterruptions)
}, 3_600_000)

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
    await this.#stores.query('update static_service.uploads set writer_until = 1 where writer_until > 0')
  }

  #run(): Promise<Program> {
    this.#started += 1
    const { env } = this.#stores
    return run(join(this.#folder, String(this.#started)), env)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#programs) await program.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
