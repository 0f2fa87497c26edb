import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { announceBackup, lockForRestore } from '../src/data-dir-lock.ts'
import { BackupWatch, DataDirError, lockDataDir, openDataDir } from '../src/index.ts'

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'data-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('one process at a time locks a directory, and its death releases the lock', async () => {
  const folder = makeFolder()
  const script = `const { lockDataDir } = await import('${import.meta.dirname}/../src/index.ts')
    globalThis.unlock = lockDataDir('${folder}')
    console.log('locked')
    setInterval(() => {}, 1000)`
  const other = spawn(process.execPath, ['--input-type=module', '-e', script])
  onTestFinished(() => void other.kill('SIGKILL'))
  await once(other.stdout, 'data')

  expect(() => lockDataDir(folder)).toThrow(new DataDirError(`Another process is using ${folder}: stop it first.`))
  other.kill('SIGKILL')
  await once(other, 'exit')
  lockDataDir(folder)()
})

test('a released lock can be acquired again', () => {
  const folder = makeFolder()

  lockDataDir(folder)()

  expect(() => lockDataDir(folder)()).not.toThrow()
})

test('a directory with an interrupted restore cannot be locked', () => {
  const folder = makeFolder()
  mkdirSync(join(folder, 'restore.partial'))

  expect(() => lockDataDir(folder)).toThrow(/A restore into .* was interrupted: run it again, or delete everything/)
  expect(() => lockForRestore(folder)(), 'it holds no lock then').not.toThrow()
})

test('a backup is visible while it runs, not before and not after', () => {
  const folder = makeFolder()
  using watch = new BackupWatch(folder)
  const before = watch.isRunning
  const conclude = announceBackup(folder)
  const meanwhile = watch.isRunning
  conclude()

  expect([before, meanwhile, watch.isRunning]).toEqual([false, true, false])
})

test('a service that starts during a backup sees it', () => {
  const folder = makeFolder()
  const conclude = announceBackup(folder)
  onTestFinished(conclude)

  using watch = new BackupWatch(folder)

  expect(watch.isRunning).toBe(true)
})

test('a service that cannot tell whether a backup is running takes it for running', () => {
  const watch = new BackupWatch(makeFolder())

  watch[Symbol.dispose]()

  expect(watch.isRunning).toBe(true)
})

test('a second backup of a directory at the same time is refused', () => {
  const folder = makeFolder()
  const conclude = announceBackup(folder)
  onTestFinished(conclude)

  expect(() => announceBackup(folder)).toThrow(/Another backup of .* is running/)
})

test('a missing data directory is created and locked', async () => {
  const folder = join(makeFolder(), 'not', 'there', 'yet')

  const release = await openDataDir(folder)
  onTestFinished(release)

  expect(existsSync(join(folder, 'lock'))).toBe(true)
})

test('a data directory that cannot be created is refused in one sentence that names it', async () => {
  const file = join(makeFolder(), 'file')
  writeFileSync(file, '')
  const folder = join(file, 'data')

  await expect(openDataDir(folder)).rejects.toThrow(
    new RegExp(`^Cannot start: DATA_DIR ${folder} is not writable \\(.*\\): set DATA_DIR to .*\\.$`),
  )
})

test('a data directory that the file system does not let anybody create is refused at once', async () => {
  // procfs answers ENOENT to mkdir below an existing directory.
  await expect(openDataDir('/proc/nope')).rejects.toThrow(
    /^Cannot start: DATA_DIR \/proc\/nope is not writable \(.*\): set DATA_DIR to .*\.$/,
  )
})
