import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { blobPathOf } from '../../src/blobs/blob-path.ts'
import { databaseFile, openDatabase } from '../../src/catalog/database.ts'
import { start } from '../support/start.ts'

const cli = join(import.meta.dirname, '../../src/maintenance/files-command.ts')

function runCli(dataDir: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    encoding: 'utf8',
  })
  return { status, lines: stdout.trimEnd().split('\n'), stderr }
}

const digestOf = (content: string) => createHash('sha256').update(content).digest('hex')

/** A store with two files of one content and one of another; its service has stopped. */
async function makeStore() {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-check-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const service = await start({ dataDir })
  await service.put('one/жук.txt', 'shared')
  await service.put('two.txt', 'shared')
  await service.put('three.txt', 'alone')
  await service.close()
  const fileOf = (content: string, form: 'identity' | 'br' = 'identity') =>
    join(dataDir, 'blobs', ...blobPathOf(digestOf(content), form))
  const plant = (content: string) => {
    mkdirSync(dirname(fileOf(content)), { recursive: true })
    writeFileSync(fileOf(content), content)
    return fileOf(content).slice(dataDir.length + 1)
  }
  return { dataDir, fileOf, plant }
}

test('a whole store is whole', async () => {
  const { dataDir } = await makeStore()

  const { status, lines } = runCli(dataDir, 'check')

  expect([status, lines]).toEqual([0, ['3 files, 2 contents, 11 bytes: all whole']])
})

test('every damaged path is named, also after repairing what can be', async () => {
  const { dataDir, fileOf } = await makeStore()
  writeFileSync(fileOf('shared'), 'shaRed')
  unlinkSync(fileOf('alone'))

  const checked = runCli(dataDir, 'check')
  const repaired = runCli(dataDir, 'check', '--repair')

  expect([checked.status, repaired.status]).toEqual([1, 1])
  expect(checked.lines.sort()).toEqual([
    '3 files, 2 contents, 11 bytes: 3 damaged',
    'damaged: one/жук.txt: its content has been altered',
    'damaged: three.txt: its content is missing',
    'damaged: two.txt: its content has been altered',
  ])
  expect(repaired.lines.sort()).toEqual(checked.lines)
  expect(existsSync(fileOf('shared'))).toBe(true)
})

test('what nothing refers to harms nothing, and is dropped by a repair', async () => {
  const { dataDir, plant } = await makeStore()
  const orphan = plant('nobody wants me')
  writeFileSync(join(dataDir, 'tmp', 'draft'), '')

  const checked = runCli(dataDir, 'check')
  const repaired = runCli(dataDir, 'check', '--repair')
  const again = runCli(dataDir, 'check')

  expect([checked.status, checked.lines[0]]).toEqual([0, `orphan: ${orphan}`])
  expect(repaired.lines).toEqual([
    `dropped: ${orphan}`,
    'dropped: tmp/draft',
    '3 files, 2 contents, 11 bytes: all whole',
  ])
  expect(again.lines).toEqual(['3 files, 2 contents, 11 bytes: all whole'])
})

test('a damaged compressed form is named, and dropped by a repair', async () => {
  const { dataDir, fileOf } = await makeStore()
  writeFileSync(fileOf('alone', 'br'), brotliCompressSync('something else'))
  writeFileSync(fileOf('shared', 'br'), brotliCompressSync('shared'))

  const checked = runCli(dataDir, 'check')
  const repaired = runCli(dataDir, 'check', '--repair')

  expect([checked.status, checked.lines[0]]).toEqual([
    1,
    'damaged: three.txt: its br form is damaged',
  ])
  expect(repaired.status).toBe(0)
  expect([existsSync(fileOf('alone', 'br')), existsSync(fileOf('shared', 'br'))]).toEqual([
    false,
    true,
  ])
})

test.each([
  ['a directory', `update directories set total_size = 1 where path = 'one'`, 'the directory /one'],
  ['a category', 'update categories set file_count = 7', 'the category document'],
  ['the references', 'update blobs set refs = refs + 1 where size = 5', 'the content '],
  ['the stored bytes', 'update stored set size = 1', 'the stored bytes'],
  ['the search index', 'delete from grams where rowid = 1', 'the search index'],
  ['a lost content row', 'delete from blobs where size = 5', 'three.txt'],
])('a wrong count is damage: %s', async (_what, sql, name) => {
  const { dataDir } = await makeStore()
  const db = openDatabase(databaseFile(dataDir))
  db.pragma('foreign_keys = OFF')
  db.exec(sql)
  db.close()

  const { status, lines } = runCli(dataDir, 'check')

  expect(status).toBe(1)
  expect(lines.some((line) => line.startsWith(`damaged: ${name}`))).toBe(true)
})

test('a store that a service is using can be checked but not repaired', async () => {
  await using service = await start()
  await service.put('a')

  const checked = runCli(service.dataDir, 'check')
  const repaired = runCli(service.dataDir, 'check', '--repair')

  expect(checked.status).toBe(0)
  expect([repaired.status, repaired.stderr]).toEqual([
    1,
    `Another process is using ${service.dataDir}: stop it first.\n`,
  ])
}, 20_000)

test.each([[[]], [['repair']], [['check', '--force']], [['check', 'more']]])(
  '%j is answered with how to use it',
  async (args) => {
    const { status, stderr } = runCli('/nowhere', ...args)

    expect([status, stderr.split('\n')[0]]).toEqual([2, 'Usage: pnpm files check [--repair]'])
  },
)

test('where there is no store, that is said', () => {
  const { status, stderr } = runCli('/nowhere', 'check', '--repair')

  expect([status, stderr]).toEqual([1, 'There is no store in /nowhere.\n'])
})

test('a start sweeps what nothing refers to and tells of what is missing', async () => {
  const { dataDir, plant, fileOf } = await makeStore()
  const orphan = plant('nobody wants me')
  unlinkSync(fileOf('alone'))

  await using service = await start({ dataDir })

  expect(existsSync(join(dataDir, orphan))).toBe(false)
  expect(existsSync(fileOf('shared'))).toBe(true)
  const told = service.lines().map(({ msg, orphans, missing }) => ({ msg, orphans, missing }))
  expect(told).toContainEqual({ msg: 'contents without a file swept', orphans: 1 })
  expect(told).toContainEqual({ msg: 'contents missing: run `pnpm files check`', missing: 1 })
})
