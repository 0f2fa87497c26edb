import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hashBytes } from '../../src/blobs/stored-blob.ts'
import { check } from '../../src/maintenance/files-command.ts'
import { compressedCodings } from '../../src/rfc9110/content-codings.ts'
import { pathsOf } from '../support/changes.ts'
import { type Chance, DiskImage, type Flush } from '../support/disk-image.ts'
import { type Program, run } from '../support/program.ts'
import { ask, start } from '../support/start.ts'
import { filesBelow } from '../support/stored-contents.ts'
import { tus } from '../support/tus.ts'
import { findLosses, makeWriters, settle, type Writer, writeUntilKilled } from '../support/writers.ts'

const rounds = Number(process.env.POWER_LOSSES ?? 1)

// What a disk may do with all that it was not made to flush.
const last = (states: number) => states - 1
const anyOf = (count: number) => Math.floor(Math.random() * count)
const gone: Chance = { ofName: () => 0, ofBytes: (flushed) => flushed }
const emptied: Chance = { ofName: last, ofBytes: (flushed) => flushed }
const kept: Chance = { ofName: last, ofBytes: (_flushed, written) => written }
const mixed: Chance = {
  ofName: anyOf,
  ofBytes: (flushed, written) => flushed + anyOf(written - flushed + 1),
}
const fates = { gone, emptied, kept, mixed, mixedOtherwise: mixed }

test(`after each of ${rounds} losses of power all that was acknowledged is there, and nothing by halves`, async () => {
  let disk = makeDisk()
  let everybody = makeWriters(6)
  let acknowledged = 0

  for (let round = 0; round < rounds; round += 1) {
    // Now and then another one: a journal is read as a whole, and grows.
    if (round % 4 === 3) {
      disk = makeDisk()
      everybody = makeWriters(6)
    }
    acknowledged += await writeForAWhile(disk, everybody)
    for (const [fate, chance] of Object.entries(fates)) {
      const losses = await losePower(disk, everybody, chance)
      expect([fate, losses]).toEqual([fate, []])
    }
  }

  expect(acknowledged).toBeGreaterThanOrEqual(rounds)
}, 3_600_000)

// Who looks must be able to see.
test('without one kind of flush a loss of power does take what was acknowledged', async () => {
  const disk = makeDisk()
  const everybody = makeWriters(1)
  await uploadForEach(disk, everybody, (path) => path.padEnd(100_000)) // Flushed one by one.

  const losses = {
    file: await losePower(disk, everybody, emptied, 'file'),
    folder: await losePower(disk, everybody, gone, 'folder'),
    shard: await losePower(disk, everybody, gone, 'shard'),
    ancestor: await losePower(disk, everybody, gone, 'ancestor'),
  }

  for (const found of Object.values(losses)) expect(found).not.toEqual([])
})

const refusals: [number, Record<string, string>, (path: string) => string][] = [
  [412, { 'if-none-match': '*' }, (path) => path],
  [409, {}, (path) => `${path}/below`],
  [400, {}, (path) => `${path}/../other`],
]

test.each<[string, (path: string) => string]>([
  ['small', (path) => path],
  ['large', (path) => path.padEnd(100_000)],
])(
  'uploads of stored bytes that are refused with 412, 409 and 400 leave them durable (%s contents)',
  async (_size, contentOf) => {
    const disk = makeDisk()
    const everybody = makeWriters(refusals.length)
    const program = await uploadForEach(disk, everybody, contentOf)
    const token = await program.logIn()
    for (const [at, [wanted, headers, pathOf]] of refusals.entries()) {
      const { known } = everybody[at] ?? { known: [] }
      for (const [path, content] of known) {
        const parts = [
          { name: 'file', content: content ?? '', filename: 'x' },
          { name: 'path', content: pathOf(path) },
        ]
        const { status } = await program.send(token, 'upload', parts, headers)
        expect(status).toBe(wanted)
      }
    }
    await program.kill()

    for (const [fate, chance] of Object.entries(fates)) {
      expect([fate, await losePower(disk, everybody, chance)]).toEqual([fate, []])
    }
  },
)

test('a compressed form is whole after a loss of power, or is not there', async () => {
  const disk = makeDisk()
  const program = await runRecorded(disk)
  const token = await program.logIn()
  await program.send(token, 'upload', [
    { name: 'file', content: randomBytes(100_000).toString('hex'), filename: 'a.txt' },
  ])
  const coding = async () => {
    const headers = { 'accept-encoding': 'gzip' }
    const answer = await program.ask({ method: 'GET', path: '/static/a.txt', headers })
    return answer.headers['content-encoding']
  }
  await expect.poll(coding).toBe('gzip')
  await program.kill()

  const damages: string[][] = []
  for (const chance of Object.values(fates)) damages.push(await losePower(disk, [], chance))
  const unflushed = await losePower(disk, [], emptied, 'file')

  expect(damages.flat()).toEqual([])
  expect(unflushed.toSorted()).toEqual(['a.txt', 'br', 'gzip', 'zstd'])
})

// Calls of SQLite itself are in no journal of the disk.
test('small contents and changes of files are committed with a flush, rows of resumable uploads without', async () => {
  const disk = makeDisk()
  const commits = `${disk.journal}.commits`
  const program = await runPreloaded(disk, 'record-commits.ts', { COMMIT_JOURNAL: commits })
  const authorization = `Bearer ${await program.logIn()}`
  const { create } = tus({
    call: (method, path, { headers, body } = {}) =>
      program.ask({ method, path, body, headers: { authorization, ...headers } }),
  })
  await create('resumed', 3)
  const headers = { authorization }
  await program.ask({ method: 'PUT', path: '/api/files/small', headers, body: 'small' })
  await program.ask({ method: 'DELETE', path: '/api/files/small', headers })
  await program.kill()

  const all = readFileSync(commits, 'utf8').match(/^(?:uploads|contents|static-service)\.sqlite .*$/gm)

  expect(new Set(all)).toEqual(new Set(['uploads.sqlite 1', 'contents.sqlite 2', 'static-service.sqlite 2']))
})

interface Disk {
  root: string
  journal: string
  dataDir: string
}

/** A data folder of which even those that hold it must still be made. */
function makeDisk(): Disk {
  const outside = mkdtempSync(join(tmpdir(), 'static-power-'))
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }))
  const root = join(outside, 'disk')
  return { root, journal: join(outside, 'journal'), dataDir: join(root, 'new', 'folder', 'data') }
}

/** The service, with a journal of what it does to the disk. */
const runRecorded = (disk: Disk) => runPreloaded(disk, 'record-disk.ts', { DISK_JOURNAL: disk.journal })

async function runPreloaded({ dataDir }: Disk, name: string, env: Record<string, string>) {
  const preload = join(import.meta.dirname, '../support', name)
  const program = await run(dataDir, { ...env, NODE_OPTIONS: `--import ${preload}` })
  onTestFinished(() => program.kill())
  return program
}

/** Lets a service take one content for each path of each writer; it runs on. */
async function uploadForEach(disk: Disk, everybody: Writer[], contentOf: (path: string) => string): Promise<Program> {
  const program = await runRecorded(disk)
  const token = await program.logIn()
  for (const { name, known } of everybody) {
    for (const path of pathsOf(name)) {
      const content = contentOf(path)
      const { status } = await program.send(token, 'upload', [
        { name: 'file', content, filename: 'x' },
        { name: 'path', content: path },
      ])
      expect(status).toBe(201)
      known.set(path, content)
    }
  }
  return program
}

/** Lets the writers write until the service is killed; says how many changes were acknowledged. */
async function writeForAWhile(disk: Disk, everybody: Writer[]): Promise<number> {
  const program = await runRecorded(disk)
  const token = await program.logIn()
  for (const writer of everybody) await settle(program, writer)
  const kill = () => program.child.kill('SIGKILL')
  const writing = { token, writers: everybody }
  const acknowledged = await writeUntilKilled(program, writing, { kill, withinMs: 1500 })
  await program.kill()
  return acknowledged
}

/** What is lost, or damaged, for a service that starts on the disk as a loss of power may have left it. */
async function losePower(
  { root, journal, dataDir }: Disk,
  everybody: Writer[],
  chance: Chance,
  without?: Flush,
): Promise<string[]> {
  const copy = mkdtempSync(join(tmpdir(), 'static-image-'))
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
  new DiskImage(journal, root, without).write(copy, chance)
  const image = dataDir.replace(root, copy)
  // What SQLite has told to be durable is, as far as this test knows, and so is all that it wrote beyond.
  if (existsSync(image)) copyDatabase(dataDir, image)

  await using service = await start({ dataDir: image })
  const token = await service.tokenOf('admin')
  const asked = { ask: (question: Parameters<typeof ask>[1]) => ask(service.port, question) }
  const losses: string[] = []
  for (const writer of everybody) losses.push(...(await findLosses(asked, token, writer)))
  await service.close() // With this the sweep has ended that a start begins.
  const report = await check({ DATA_DIR: image })
  const drafts = readdirSync(join(image, 'tmp'))
  const forms = await damagedForms(image)
  rmSync(copy, { recursive: true })
  return [...losses, ...report.damages.map(({ path }) => path), ...report.orphans, ...drafts, ...forms]
}

/** The codings of compressed forms that are not whole. */
async function damagedForms(image: string): Promise<string[]> {
  const damaged: string[] = []
  for (const file of filesBelow(join(image, 'blobs'))) {
    const [digest, form] = basename(file).split('.')
    const coding = compressedCodings.find((each) => each === form)
    if (coding && (await hashBytes(readFileSync(file), coding, maxSize)) !== digest) damaged.push(coding)
  }
  return damaged
}

const maxSize = 1_000_000

function copyDatabase(dataDir: string, image: string) {
  for (const name of readdirSync(dataDir)) {
    if (/\.sqlite(?:-wal)?$/.test(name)) cpSync(join(dataDir, name), join(image, name))
  }
}
