import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { makeFarDirectory } from '../../../../test/support/far-directory.ts'
import { backUp } from '../../src/backup/backup.ts'
import type { BackupJob, BackupLayout } from '../../src/backup/backup-job.ts'
import { Progress } from '../../src/backup/progress.ts'
import { restore } from '../../src/backup/restore.ts'

// A service of the test's own: a database that names contents in one folder.
const layout: BackupLayout = {
  service: 'sample',
  database: 'sample.sqlite',
  folders: ['blobs'],
  contents: (database) => {
    const db = new DatabaseSync(database, { readOnly: true })
    const rows = db.prepare('select digest, size from blobs').all()
    db.close()
    const each = rows.map(({ digest, size }) => ({
      file: `blobs/${String(digest).slice(0, 2)}/${digest}`,
      size: Number(size),
      sha256: String(digest),
    }))
    return { count: each.length, bytes: each.reduce((sum, { size }) => sum + size, 0), each }
  },
}

const texts = ['one', 'two', 'three']
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex')
const fileOf = (text: string) => join('blobs', digestOf(text).slice(0, 2), digestOf(text))

/** A data folder with three contents, users and a secret, and room beside it. */
function makeStore(at = tmpdir()) {
  const outside = fs.mkdtempSync(join(at, 'data-backup-'))
  onTestFinished(() => fs.rmSync(outside, { recursive: true, force: true }))
  const dataDir = join(outside, 'data')
  fs.mkdirSync(dataDir)
  const db = new DatabaseSync(join(dataDir, layout.database))
  db.exec('pragma journal_mode = wal; create table blobs (digest text, size integer)')
  for (const text of texts) {
    db.prepare('insert into blobs values (?, ?)').run(digestOf(text), text.length)
    fs.mkdirSync(join(dataDir, fileOf(text), '..'), { recursive: true })
    fs.writeFileSync(join(dataDir, fileOf(text)), text)
  }
  db.close()
  fs.writeFileSync(join(dataDir, 'users.json'), '{"users":[]}', { mode: 0o600 })
  fs.writeFileSync(join(dataDir, 'jwt.secret'), 'a secret', { mode: 0o600 })
  return {
    outside,
    dataDir,
    backup: join(outside, 'backups/monday'),
    other: join(outside, 'other'),
  }
}

const work = (dataDir: string, folder: string, more: Partial<BackupJob> = {}): BackupJob => ({
  layout,
  dataDir,
  folder,
  verify: false,
  signal: new AbortController().signal,
  progress: new Progress(new PassThrough()),
  ...more,
})

const filesBelow = (folder: string) =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

test('what was backed up is restored elsewhere, private files private', async () => {
  const { dataDir, backup, other } = makeStore()

  const made = await backUp(work(dataDir, backup, { verify: true }))
  const restored = await restore(work(other, backup, { verify: true }))

  expect([made.count, made.bytes, restored.count]).toEqual([3, 11, 3])
  const whole = [...texts.map(fileOf), 'jwt.secret', 'sample.sqlite', 'users.json'].sort()
  expect(filesBelow(backup)).toEqual([...whole, 'backup.json'].sort())
  expect(filesBelow(other)).toEqual([...whole, 'lock'].sort())
  for (const text of texts) expect(fs.readFileSync(join(other, fileOf(text)), 'utf8')).toBe(text)
  for (const name of ['users.json', 'jwt.secret', 'sample.sqlite']) {
    expect([name, fs.statSync(join(backup, name)).mode & 0o777]).toEqual([name, 0o600])
    expect([name, fs.statSync(join(other, name)).mode & 0o777]).toEqual([name, 0o600])
  }
})

test('on one disk contents are linked, on another one copied', async () => {
  const { dataDir, backup } = makeStore()
  const far = makeFarDirectory()
  expect(fs.statSync(far).dev).not.toBe(fs.statSync(dataDir).dev)

  await backUp(work(dataDir, backup))
  await backUp(work(dataDir, join(far, 'copy'), { verify: true }))

  const inode = (folder: string) => fs.statSync(join(folder, fileOf('one'))).ino
  expect(inode(backup)).toBe(inode(dataDir))
  expect(fs.statSync(join(far, 'copy', fileOf('one'))).nlink).toBe(1)
  expect(fs.readFileSync(join(far, 'copy', fileOf('one')), 'utf8')).toBe('one')
})

test('a content that is missing or cut is named, and no backup is left', async () => {
  const { dataDir, backup } = makeStore()
  fs.rmSync(join(dataDir, fileOf('one')))
  fs.truncateSync(join(dataDir, fileOf('three')), 2)

  const made = backUp(work(dataDir, backup))

  await expect(made).rejects.toThrow('2 contents are damaged')
  await expect(made).rejects.toThrow(`its content ${digestOf('one')} is missing`)
  await expect(made).rejects.toThrow(`its content ${digestOf('three')} has 2 bytes instead of 5`)
  expect(fs.readdirSync(join(backup, '..'))).toEqual([])
})

test('a content that was altered is found by who reads every byte', async () => {
  const { dataDir, backup, other } = makeStore()
  await backUp(work(dataDir, backup))
  fs.writeFileSync(join(backup, fileOf('two')), 'TWO')

  await expect(restore(work(other, backup, { verify: true }))).rejects.toThrow(
    `its content ${digestOf('two')} has been altered`,
  )
  expect(filesBelow(other)).toEqual(['lock'])
})

test('a database that was altered is not restored', async () => {
  const { dataDir, backup, other } = makeStore()
  await backUp(work(dataDir, backup))
  fs.appendFileSync(join(backup, 'sample.sqlite'), 'x')

  await expect(restore(work(other, backup))).rejects.toThrow('sample.sqlite has been altered')
  expect(filesBelow(other)).toEqual(['lock'])
})

test('nothing is overwritten, neither by a backup nor by a restore', async () => {
  const { outside, dataDir, backup } = makeStore()
  await backUp(work(dataDir, backup))
  const before = filesBelow(outside)

  await expect(backUp(work(dataDir, backup))).rejects.toThrow('There is something in')
  await expect(restore(work(dataDir, backup))).rejects.toThrow('is not empty')
  expect(filesBelow(outside).filter((name) => !name.endsWith('lock'))).toEqual(
    before.filter((name) => !name.endsWith('lock')),
  )
})

test('what is no finished backup of this service is not restored', async () => {
  const { dataDir, backup, other } = makeStore()
  await backUp(work(dataDir, backup))
  fs.renameSync(backup, `${backup}.partial`)

  await expect(restore(work(other, `${backup}.partial`))).rejects.toThrow('no finished backup')
  await expect(restore(work(other, `${backup}.gone`))).rejects.toThrow('no finished backup')
  fs.renameSync(`${backup}.partial`, backup)
  const foreign = { layout: { ...layout, service: 'another' } }
  await expect(restore(work(other, backup, foreign))).rejects.toThrow(
    'This is a backup of the sample, not of the another',
  )
})

test('who is told to stop leaves nothing behind', async () => {
  const { dataDir, backup, other } = makeStore()
  await backUp(work(dataDir, backup))
  const signal = AbortSignal.abort(new Error('stopped'))

  await expect(backUp(work(dataDir, `${backup}-2`, { signal }))).rejects.toThrow('stopped')
  await expect(restore(work(other, backup, { signal }))).rejects.toThrow('stopped')
  expect(fs.readdirSync(join(backup, '..'))).toEqual(['monday'])
  expect(filesBelow(other)).toEqual(['lock'])
})

test('a backup may lie in the data folder, but not where the service tidies up', async () => {
  const { dataDir } = makeStore()

  await backUp(work(dataDir, join(dataDir, 'backups/monday')))

  for (const folder of [dataDir, join(dataDir, 'blobs/monday')]) {
    await expect(backUp(work(dataDir, folder))).rejects.toThrow("is the service's own")
  }
  expect(fs.existsSync(join(dataDir, 'backups/monday/backup.json'))).toBe(true)
})

test('what root restores belongs to whose the data folder is', async () => {
  const { dataDir, backup, other } = makeStore()
  await backUp(work(dataDir, backup))
  fs.mkdirSync(other)
  const uid = process.getuid?.() === 0 ? 1000 : fs.statSync(other).uid
  fs.chownSync(other, uid, fs.statSync(other).gid)

  await restore(work(other, backup))

  const names = fs.readdirSync(other, { recursive: true, encoding: 'utf8' })
  expect(names.length).toBeGreaterThan(6)
  expect(names.filter((name) => fs.statSync(join(other, name)).uid !== uid)).toEqual([])
})

test('no backup is named like one that is not finished', async () => {
  const { dataDir, backup } = makeStore()

  await expect(backUp(work(dataDir, `${backup}.partial`))).rejects.toThrow('end in .partial')
})
