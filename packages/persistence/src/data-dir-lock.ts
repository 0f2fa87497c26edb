import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { giveToOwner } from './durable-files.ts'
import { DataDirError } from './errors.ts'

// Node cannot lock files; SQLite can, and the system frees its locks with the process, however that ends. The files
// stay: removing one would let two processes lock two files of one name.

export const acquireLock = 'lock'
const backupLock = 'backup.lock'

/** What lies in a data folder and is nothing of value. */
export const lockNames = [acquireLock, backupLock]

/** Where a restore builds what it puts in place at its end. */
export const underRestore = (dataDir: string) => join(dataDir, 'restore.partial')

/**
 * Takes a data folder for this process alone, until the function that it returns is called or the process ends,
 * however it ends: much of what a service knows of its folder is known within one process only.
 * @throws {DataDirError} when another process has it, or a restore into it was broken off.
 */
export function lockDataDir(dataDir: string): () => void {
  const unlock = hold(dataDir, acquireLock, `Another process is using ${dataDir}: stop it first.`)
  if (!existsSync(underRestore(dataDir))) return unlock
  unlock()
  throw new DataDirError(
    `A restore into ${dataDir} was broken off: remove all that is in there, and restore again.`,
  )
}

/**
 * Announces a backup of this folder, until the function that it returns is called or the process ends.
 * @throws {DataDirError} when another one is being made.
 */
export const announceBackup = (dataDir: string): (() => void) =>
  hold(dataDir, backupLock, `Another backup of ${dataDir} is being made: wait until it is done.`)

/** Tells a service whether a backup of its folder is being made at this moment. */
export class BackupWatch implements Disposable {
  readonly #dataDir: string
  readonly #db: DatabaseSync

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#db = new DatabaseSync(join(dataDir, backupLock))
  }

  /** Takes some 50 µs. When it cannot be told, there is one. */
  get isRunning(): boolean {
    try {
      take(this.#db, this.#dataDir, backupLock)
      this.#db.exec('rollback')
      return false
    } catch {
      return true
    }
  }

  [Symbol.dispose]() {
    this.#db.close()
  }
}

function hold(dataDir: string, name: string, refusal: string): () => void {
  const db = new DatabaseSync(join(dataDir, name), { timeout: 3000 })
  try {
    take(db, dataDir, name)
  } catch (error) {
    db.close()
    throw isBusy(error) ? new DataDirError(refusal) : error
  }
  return () => {
    if (db.isOpen) db.close()
  }
}

function take(db: DatabaseSync, dataDir: string, name: string) {
  // In memory: else each locking makes and removes a file.
  db.exec('pragma journal_mode = memory; begin exclusive')
  giveToOwner(dataDir, join(dataDir, name))
}

// https://www.sqlite.org/rescode.html#busy
const isBusy = (error: unknown) =>
  error instanceof Error && 'errcode' in error && error.errcode === 5
