import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { giveToOwner } from './durable-files.ts'

// Node has no flock, so an exclusive SQLite transaction serves as one. The kernel releases it with the process, so a
// lock is never stale. Never remove the lock file: two processes could then lock two files of the same name.

/** Another process holds the lock. */
export class LockBusyError extends Error {}

/** An exclusive lock between processes, on a file of its own. */
export class FileLock {
  readonly #file: string
  readonly #database: DatabaseSync

  /** @throws when the lock file cannot be opened or created. */
  constructor(file: string, { timeoutMs = 0 } = {}) {
    this.#file = file
    this.#database = new DatabaseSync(file, { timeout: timeoutMs })
  }

  /** Blocks this process up to `timeoutMs`. @throws {LockBusyError} */
  acquire() {
    try {
      // In-memory journal: otherwise each lock creates and deletes a file.
      this.#database.exec('pragma journal_mode = memory; begin exclusive')
    } catch (error) {
      throw isBusy(error) ? new LockBusyError(`Cannot acquire lock ${this.#file}`) : error
    }
    giveToOwner(this.#file)
  }

  release() {
    this.#database.exec('rollback')
  }

  /** Closes the lock file, and releases the lock if held. Idempotent. */
  close() {
    if (this.#database.isOpen) this.#database.close()
  }
}

/** Runs `run` under an exclusive lock on `file`. @throws {LockBusyError} when it is not free within 10 s. */
export async function withFileLock<T>(file: string, run: () => Promise<T>): Promise<T> {
  const lock = new FileLock(file)
  try {
    await acquireWithin(lock, 10_000)
    return await run()
  } finally {
    lock.close()
  }
}

// Polls: a blocking wait would stop the event loop.
async function acquireWithin(lock: FileLock, timeoutMs: number) {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return lock.acquire()
    } catch (error) {
      if (!(error instanceof LockBusyError) || performance.now() > deadline) throw error
    }
    await sleep(20)
  }
}

// https://www.sqlite.org/rescode.html#busy
const isBusy = (error: unknown) =>
  error instanceof Error && 'errcode' in error && error.errcode === 5
