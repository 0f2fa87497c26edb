import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { blobDatabaseFile } from '../../src/blobs/disk/small-blobs.ts'
import { blobPathOf } from '../../src/blobs/stored-blob.ts'
import { databaseFile } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import { runCli, spawnCli } from '../support/files-command.ts'
import { start } from '../support/start.ts'
import { alter, digestOf, rowsIn, storedIn } from '../support/stored-contents.ts'

const large = 'large '.repeat(10_000)

/** A store with two files of one small content, one of another, and a large one; its service has stopped. */
async function makeStore() {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-check-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const service = await start({ dataDir })
  await service.put('one/жук.txt', 'shared')
  await service.put('two.txt', 'shared')
  await service.put('three.txt', 'alone')
  await service.put('four.bin', large)
  await service.close()
  const fileOf = (content: string) => join(dataDir, 'blobs', ...blobPathOf(digestOf(content)))
  return { dataDir, fileOf }
}

const sound = '4 files, 3 contents, 60011 bytes: all sound'

/** Stores a row that no file refers to. */
function addRow(dataDir: string, digest: string, bytes: Buffer) {
  const db = new Sqlite(blobDatabaseFile(dataDir))
  db.prepare('insert into contents (digest, coding, bytes) values (?, 0, ?)').run(Buffer.from(digest, 'hex'), bytes)
  db.close()
}

test('a sound store is reported as sound', async () => {
  const { dataDir } = await makeStore()

  const { status, lines } = spawnCli(dataDir, 'check')

  expect([status, lines]).toEqual([0, [sound]])
})

test('the store is found in a folder of DATA_DIR, as that of `npm start`', async () => {
  const { dataDir } = await makeStore()
  const parent = mkdtempSync(join(tmpdir(), 'static-check-'))
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }))
  renameSync(dataDir, join(parent, 'static-service'))

  expect(await runCli(parent, 'check')).toMatchObject({ status: 0, lines: [sound] })
})

test('every damaged path is named with the reason, and stays so after a repair', async () => {
  const { dataDir, fileOf } = await makeStore()
  alter(dataDir, { digest: digestOf('shared') }, () => Buffer.from('shaRed'))
  alter(dataDir, { digest: digestOf('alone') }, () => undefined)
  truncateSync(fileOf(large), 100)

  const checked = await runCli(dataDir, 'check')
  const repaired = await runCli(dataDir, 'check', '--repair')

  expect([checked.status, repaired.status]).toEqual([1, 1])
  expect(checked.lines.sort()).toEqual([
    '4 files, 3 contents, 60011 bytes: 4 damaged',
    'damaged: four.bin: its content has 100 bytes instead of 60000',
    'damaged: one/жук.txt: its content has been altered',
    'damaged: three.txt: its content is missing',
    'damaged: two.txt: its content has been altered',
  ])
  expect(repaired.lines.sort()).toEqual(checked.lines)
  expect(rowsIn(dataDir).map(({ digest }) => digest)).toEqual([digestOf('shared')])
})

test.each([
  ['a directory', (file: string) => mkdirSync(file), 'EISDIR'],
  ['a named pipe', (file: string) => execFileSync('mkfifo', [file]), 'ESPIPE'],
])('a check goes on past contents and folders that cannot be read, and names them: %s', async (_what, place, code) => {
  const { dataDir, fileOf } = await makeStore()
  // Reading a directory fails, for root as well; a named pipe has no writer.
  rmSync(fileOf(large))
  place(fileOf(large))
  symlinkSync('f0', join(dataDir, 'blobs/f0')) // To itself.
  alter(dataDir, { digest: digestOf('alone') }, () => Buffer.from('ALONE'))

  const { status, lines } = await runCli(dataDir, 'check')

  expect(status).toBe(1)
  expect(lines.sort()).toEqual([
    '4 files, 3 contents, 60011 bytes: 3 damaged',
    `damaged: four.bin: its content cannot be read (${code})`,
    'damaged: the blobs that begin with f: cannot be read (ELOOP)',
    'damaged: three.txt: its content has been altered',
  ])
})

/** The number of the first page of a table. */
function rootPage(file: string, table: string): number {
  const db = new Sqlite(file, { readonly: true })
  try {
    const find = db.prepare<[string], number>('select rootpage from sqlite_schema where name = ?')
    return find.pluck().get(table) ?? 0
  } finally {
    db.close()
  }
}

test('damage of the content database is named with the files that it affects', async () => {
  const { dataDir } = await makeStore()
  const file = blobDatabaseFile(dataDir)
  const bytes = readFileSync(file)
  const pageBytes = 4096
  const end = rootPage(file, 'contents') * pageBytes
  bytes.fill(0xff, end - pageBytes, end)
  writeFileSync(file, bytes)

  const { status, lines } = await runCli(dataDir, 'check')

  expect(status).toBe(1)
  expect(lines).toContainEqual(
    expect.stringMatching(/^damaged: three\.txt: its content cannot be read \(SQLITE_CORRUPT/),
  )
})

test('what no file refers to is no damage, and is removed by a repair', async () => {
  const { dataDir, fileOf } = await makeStore()
  const row = digestOf('an orphan row')
  const file = fileOf('an orphan file')
  addRow(dataDir, row, Buffer.from('an orphan row'))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, 'an orphan file')
  writeFileSync(join(dataDir, 'tmp', 'staged'), '')

  const checked = await runCli(dataDir, 'check')
  const repaired = await runCli(dataDir, 'check', '--repair')
  const again = await runCli(dataDir, 'check')

  const orphans = [row, digestOf('an orphan file')]
  expect(checked.status).toBe(0)
  expect(checked.lines).toEqual(expect.arrayContaining(orphans.map((name) => `orphan: ${name}`)))
  expect(repaired.lines.sort()).toEqual([...orphans.map((name) => `removed: ${name}`), sound].sort())
  expect(again.lines).toEqual([sound])
})

test.each([
  ['a directory', `update directories set total_size = 1 where path = 'one'`, 'the directory /one'],
  ['a category', 'update categories set file_count = 7', 'the category document'],
  ['the references', 'update blobs set refs = refs + 1 where size = 5', 'the content '],
  ['the stored bytes', 'update catalog set stored_size = 1', 'the stored bytes'],
  [
    'the end of a past file',
    `insert into past_files select path, change_id, 99, updated_at, digest, size, content_type, category, uploaded_by, created_at, updated_at from files where size = 5;
     update blobs set past = (select count(*) from past_files) where size = 5`,
    'the past of ',
  ],
  [
    'the moment of a version',
    `insert into versions (id, version, changelog, created_by, created_at, change_id) values (1, 'one', '', '', '', 99)`,
    'the version one',
  ],
  ['the entry of a change', 'delete from changes', 'the history of '],
  ['the search index', 'delete from trigrams where rowid = 1', 'the search index'],
  ['a lost content row', 'delete from blobs where size = 5', 'three.txt'],
])('a wrong count is damage: %s', async (_what, sql, name) => {
  const { dataDir } = await makeStore()
  const db = new Sqlite(databaseFile(dataDir))
  db.exec(sql)
  db.close()

  const { status, lines } = await runCli(dataDir, 'check')

  expect(status).toBe(1)
  expect(lines.some((line) => line.startsWith(`damaged: ${name}`))).toBe(true)
})

test('a store that a service is using can be checked but not repaired', async () => {
  await using service = await start()
  await service.put('a')

  const checked = spawnCli(service.dataDir, 'check')
  const repaired = spawnCli(service.dataDir, 'check', '--repair')

  expect(checked.status).toBe(0)
  expect([repaired.status, repaired.stderr]).toEqual([
    1,
    `Another process is using ${service.dataDir}: stop it first.\n`,
  ])
})

test.each([[[]], [['repair']], [['check', '--force']], [['check', 'more']]])(
  '%j is answered with how to use it',
  async (args) => {
    const { status, stderr } = await runCli('/nowhere', ...args)

    expect([status, stderr.split('\n')[0]]).toEqual([2, 'Usage: npm run files -- check [--repair]'])
  },
)

test('a file in the folder of other contents is no orphan, and is not said to be removed', async () => {
  const { dataDir, fileOf } = await makeStore()
  const stray = join(dirname(fileOf(large)), digestOf('a stray'))
  writeFileSync(stray, 'a stray')

  const repaired = await runCli(dataDir, 'check', '--repair')

  expect([repaired.lines, existsSync(stray)]).toEqual([[sound], true])
})

test('a copy without a folder for large contents is sound where there are none', async () => {
  const { dataDir } = await makeStore()
  const service = await start({ dataDir })
  await service.call('POST', '/api/files/delete', { json: { paths: ['four.bin'], forget: true } })
  await service.close()
  rmSync(join(dataDir, 'blobs'), { recursive: true })

  expect(await runCli(dataDir, 'check')).toMatchObject({
    status: 0,
    lines: ['3 files, 2 contents, 11 bytes: all sound'],
  })
})

test('a folder without a store is reported', async () => {
  const { status, stderr } = await runCli('/nowhere', 'check', '--repair')

  expect([status, stderr]).toEqual([1, 'There is no store in /nowhere.\n'])
})

test('what a service stores during a check is no orphan', async () => {
  const { dataDir } = await makeStore()
  // A content that is stored after the catalog was read.
  using _digests = vi.spyOn(FolderBlobStore.prototype, 'digests').mockResolvedValue([digestOf('shared')])

  const { status, lines } = await runCli(dataDir, 'check')

  expect([status, lines]).toEqual([0, [sound]])
})

test('a missing contents.sqlite is named, and not created by a repair', async () => {
  const { dataDir } = await makeStore()
  const file = join(dataDir, 'contents.sqlite')
  rmSync(file)

  const checked = await runCli(dataDir, 'check')
  const repaired = await runCli(dataDir, 'check', '--repair')

  const sentence = `There is no contents.sqlite in ${dataDir}: restore it from a backup.\n`
  expect([checked.status, checked.stderr]).toEqual([1, sentence])
  expect([repaired.status, repaired.stderr]).toEqual([1, sentence])
  expect(existsSync(file)).toBe(false)
})

test('an empty catalog is no store, and a repair beside it removes nothing', async () => {
  const { dataDir } = await makeStore()
  const before = storedIn(dataDir)
  writeFileSync(databaseFile(dataDir), '')

  const outcomes = [await runCli(dataDir, 'check'), await runCli(dataDir, 'check', '--repair')]

  const sentence = `There is no store in ${dataDir}.\n`
  expect(outcomes.map(({ status, stderr }) => [status, stderr])).toEqual(Array(2).fill([1, sentence]))
  expect(storedIn(dataDir)).toEqual(before)
})

test('a catalog that is no database is named in a sentence', async () => {
  const { dataDir } = await makeStore()
  writeFileSync(databaseFile(dataDir), 'no database: '.repeat(100))

  const { status, stderr } = await runCli(dataDir, 'check')

  expect([status, stderr]).toEqual([1, 'The database is damaged, or the disk fails (file is not a database).\n'])
})

test('a start removes what no file refers to, and reports what is missing or cut', async () => {
  const { dataDir, fileOf } = await makeStore()
  const orphan = fileOf('an orphan file')
  mkdirSync(dirname(orphan), { recursive: true })
  writeFileSync(orphan, 'an orphan file')
  addRow(dataDir, digestOf('an orphan row'), Buffer.from('an orphan row'))
  alter(dataDir, { digest: digestOf('alone') }, () => undefined)
  truncateSync(fileOf(large), 100)

  await using service = await start({ dataDir })

  // After two seconds a start no longer waits for this.
  const told = () => service.lines().map(({ msg, orphans, missing }) => ({ msg, orphans, missing }))
  await expect.poll(told).toContainEqual({ msg: 'contents missing: run `npm run files -- check`', missing: 2 })
  expect(told()).toContainEqual({ msg: 'unreferenced contents removed', orphans: 2 })
  const health = async () => (await service.call('GET', '/health')).body
  expect(await health()).toMatchObject({
    status: 'degraded',
    checks: { contents: { status: 'degraded', missing: 2 } },
  })
  expect(storedIn(dataDir)).toEqual([fileOf(large), `row ${digestOf('shared')} identity`])

  // One is uploaded again, and the file of the other deleted.
  await service.put('five.bin', large)
  await expect.poll(health).toMatchObject({ checks: { contents: { missing: 1 } } })
  await service.call('DELETE', '/api/files/three.txt')
  await expect.poll(health).toMatchObject({ status: 'ok' })
  expect(await health()).not.toHaveProperty('checks.contents')
})

test.each([
  ['', [databaseFile], rmSync],
  [' though it is there, empty', [databaseFile], (file: string) => writeFileSync(file, '')],
  [', with files alone left of these', [databaseFile, blobDatabaseFile], rmSync],
])('a start without the catalog is refused, and removes no contents%s', async (_left, missing, lose) => {
  const { dataDir } = await makeStore()
  for (const file of missing.map((fileIn) => fileIn(dataDir))) {
    for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    lose(file)
  }
  const before = storedIn(dataDir)

  const starting = start({ dataDir })

  const sentence = `There is no catalog in ${databaseFile(dataDir)}, but there are contents: put it back, or empty the folder and restore a backup.`
  await expect(starting).rejects.toThrow(sentence)
  expect(storedIn(dataDir)).toEqual(before)
})
