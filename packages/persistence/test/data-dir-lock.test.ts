import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { announceBackup } from '../src/data-dir-lock.ts'
import { BackupWatch, DataDirError, lockDataDir } from '../src/index.ts'

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'data-lock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('a folder is for one process, and free again when that process is killed', async () => {
  const folder = makeFolder()
  const script = `const { lockDataDir } = await import('${import.meta.dirname}/../src/index.ts')
    globalThis.unlock = lockDataDir('${folder}')
    console.log('locked')
    setInterval(() => {}, 1000)`
  const other = spawn(process.execPath, ['--input-type=module', '-e', script])
  onTestFinished(() => void other.kill('SIGKILL'))
  await once(other.stdout, 'data')

  expect(() => lockDataDir(folder)).toThrow(
    new DataDirError(`Another process is using ${folder}: stop it first.`),
  )
  other.kill('SIGKILL')
  await once(other, 'exit')
  lockDataDir(folder)()
}, 20_000)

test('a lock that was given back can be taken again', () => {
  const folder = makeFolder()

  lockDataDir(folder)()

  expect(() => lockDataDir(folder)()).not.toThrow()
})

test('nobody works on a folder into which a restore was broken off', () => {
  const folder = makeFolder()
  mkdirSync(join(folder, 'restore.partial'))

  expect(() => lockDataDir(folder)).toThrow(/A restore into .* was broken off: remove all/)
})

test('a backup is seen while it is made, not before and not after', () => {
  const folder = makeFolder()
  using watch = new BackupWatch(folder)
  const before = watch.isRunning
  const conclude = announceBackup(folder)
  const meanwhile = watch.isRunning
  conclude()

  expect([before, meanwhile, watch.isRunning]).toEqual([false, true, false])
})

test('a service that starts during a backup sees it too', () => {
  const folder = makeFolder()
  const conclude = announceBackup(folder)
  onTestFinished(conclude)

  using watch = new BackupWatch(folder)

  expect(watch.isRunning).toBe(true)
})

test('one backup of a folder is made at a time', () => {
  const folder = makeFolder()
  const conclude = announceBackup(folder)
  onTestFinished(conclude)

  expect(() => announceBackup(folder)).toThrow(/Another backup of .* is being made/)
}, 20_000)
