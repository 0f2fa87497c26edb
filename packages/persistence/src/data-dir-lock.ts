import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createDirectory, FileLock, isBusy } from './durable-files.ts'
import { codeOf, DataDirError } from './errors.ts'

const lockFile = 'lock'
const backupLockFile = 'backup.lock'

/** Files in a data directory that hold no data. */
export const lockNames = [lockFile, backupLockFile]

/** File that names the backup of an incomplete restore. */
export const restoreMarker = (dataDir: string) => join(dataDir, 'restore.partial')

/** Creates DATA_DIR if it is missing, and locks it as `lockDataDir`. @throws {DataDirError} also if it is not writable. */
export async function openDataDir(dataDir: string): Promise<() => void> {
  try {
    await createDirectory(dataDir)
    return lockDataDir(dataDir)
  } catch (cause) {
    if (!(cause instanceof Error && notWritableCodes.test(codeOf(cause)))) throw cause
    const fault = `DATA_DIR ${dataDir} is not writable (${cause.message})`
    throw new DataDirError(`Cannot start: ${fault}: set DATA_DIR to a directory that this user can write.`, { cause })
  }
}

/**
 * Locks an existing data directory for this process, since services cache its state in memory.
 * @returns a function that releases the lock; so does the end of the process.
 * @throws {DataDirError} if another process holds it, or after an interrupted restore.
 */
export function lockDataDir(dataDir: string): () => void {
  const unlock = lockForRestore(dataDir)
  refuseUnfinished(dataDir, unlock)
  return unlock
}

/** @throws {DataDirError} after an interrupted restore, and calls `unlock` before. */
export function refuseUnfinished(dataDir: string, unlock = () => {}): void {
  if (!existsSync(restoreMarker(dataDir))) return
  unlock()
  throw new DataDirError(`A restore into ${dataDir} was interrupted: run it again, or delete everything in it.`)
}

/** As `lockDataDir`, but permits an interrupted restore. */
export const lockForRestore = (dataDir: string): (() => void) =>
  hold(join(dataDir, lockFile), `Another process is using ${dataDir}: stop it first.`)

/**
 * Marks a backup of this directory as running, until the returned function is called or the process ends.
 * @throws {DataDirError} while another backup runs.
 */
export const announceBackup = (dataDir: string): (() => void) =>
  hold(join(dataDir, backupLockFile), `Another backup of ${dataDir} is running: wait until it has finished.`)

/** Tells a service whether a backup of its data directory is running. */
export class BackupWatch implements Disposable {
  readonly #lock: FileLock

  constructor(dataDir: string) {
    this.#lock = new FileLock(join(dataDir, backupLockFile))
  }

  /** Takes some 50 µs. Fails safe: treated as running when unknown. */
  get isRunning(): boolean {
    try {
      this.#lock.acquire()
      this.#lock.release()
      return false
    } catch {
      return true
    }
  }

  [Symbol.dispose]() {
    this.#lock[Symbol.dispose]()
  }
}

/** Holds a lock until the returned function is called or the process ends. @throws {DataDirError} if another process does. */
export function hold(file: string, refusal: string): () => void {
  const lock = new FileLock(file, { timeoutMs: 3000 })
  try {
    lock.acquire()
  } catch (error) {
    lock[Symbol.dispose]()
    throw isBusy(error) ? new DataDirError(refusal) : error
  }
  return () => lock[Symbol.dispose]()
}

const notWritableCodes = /^(?:E(?:ACCES|PERM|ROFS|EXIST|NOTDIR|NOENT)$|SQLITE_(?:READONLY|CANTOPEN))/
