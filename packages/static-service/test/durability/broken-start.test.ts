import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { makeFarDirectory } from '../../../../test/support/far-directory.ts'
import { databaseFile } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { start } from '../support/start.ts'

const makeFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-broken-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const startOnly = (dataDir: string) =>
  spawnSync(process.execPath, [join(import.meta.dirname, '../../dist/main.js')], {
    env: { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent', DATA_DIR: dataDir },
    encoding: 'utf8',
    timeout: 600_000,
  })

/** A database that another process holds. */
function lock(dataDir: string): Sqlite.Database {
  const db = new Sqlite(databaseFile(dataDir))
  onTestFinished(() => {
    db.close()
  })
  db.exec('begin immediate')
  return db
}

test.each([
  [
    'a database that is none',
    (dataDir: string) => writeFileSync(databaseFile(dataDir), 'x'.repeat(9000)),
    /^Cannot start: cannot use the database in DATA_DIR: file is not a database\.$/,
  ],
  [
    'a database that is locked',
    (dataDir: string) => lock(dataDir),
    /^Cannot start: cannot use the database in DATA_DIR: database is locked\.$/,
  ],
  [
    'a database of a newer version',
    (dataDir: string) => {
      const db = new Sqlite(databaseFile(dataDir))
      db.exec('create table migrations (part text primary key, applied integer not null) strict')
      db.exec("insert into migrations values ('catalog', 99)")
      db.close()
    },
    /^The database in DATA_DIR is of a newer version of this service: start that version, or .*\.$/,
  ],
  [
    'a file where the folder should be',
    (dataDir: string) => {
      rmSync(dataDir, { recursive: true })
      writeFileSync(dataDir, '')
    },
    /^Cannot start: DATA_DIR .*data is not writable \(EEXIST: .*\): set DATA_DIR to .*\.$/,
  ],
])('a start on %s is refused in one sentence, with status 1', (_name, harm, words) => {
  const dataDir = join(makeFolder(), 'data')
  mkdirSync(dataDir)
  harm(dataDir)

  const { status, stderr } = startOnly(dataDir)

  expect(status).toBe(1)
  const told = stderr.trimEnd().split('\n').at(-1) ?? ''
  expect(told).toMatch(words)
  expect(stderr).not.toMatch(/^\s+at /m)
})

test('a start with blobs and tmp on different file systems is refused in one sentence', () => {
  const dataDir = makeFolder()
  symlinkSync(makeFarDirectory(), join(dataDir, 'blobs'))

  const { status, stderr } = startOnly(dataDir)

  expect([status, stderr.trimEnd().split('\n').at(-1)]).toEqual([
    1,
    `Cannot start: blobs and tmp in ${dataDir} are on different file systems: put all of DATA_DIR on one.`,
  ])
  expect(stderr).not.toMatch(/^\s+at /m)
})

test('a start on a disk that cannot be written is refused in one sentence', async () => {
  using disk = mountSmallDisk(24)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const dataDir = join(disk.folder, 'data')
  const service = await start({ dataDir })
  await service.close()
  disk.forbidWrites()

  const { status, stderr } = startOnly(dataDir)

  expect([status, stderr.trimEnd().split('\n').at(-1)]).toEqual([1, expect.stringMatching(/^Cannot start: .*/)])
  expect(stderr).not.toMatch(/^\s+at /m)
})

test('while another process has locked the database changes are refused with 503 and leave nothing, and files are served', async () => {
  await using service = await start()
  await service.put('a.txt', 'kept')
  const other = lock(service.dataDir)

  const { status, headers, body } = await service.put('b.txt', 'lost')
  const served = await service.call('GET', '/static/a.txt')

  expect([status, body.code, headers['retry-after']]).toEqual([503, 'unavailable', '2'])
  expect(served.bytes.toString()).toBe('kept')
  await expect.poll(async () => (await service.storedContents()).length).toBe(1)
  other.exec('rollback')
  expect((await service.put('b.txt', 'stored')).status).toBe(201)
})
