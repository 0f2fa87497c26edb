import { randomUUID } from 'node:crypto'
import { chownSync, closeSync, openSync, statSync } from 'node:fs'
import { mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from 'better-sqlite3'
import { codeOf } from './errors.ts'
import { openFile } from './sql/sqlite-files.ts'

/** Makes creations, renames and removals in this directory survive a power loss. */
export async function fsyncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r')
  await handle.sync()
}

/** Creates a directory (0700) and its missing parents, each entry fsynced. */
export async function createDirectory(directory: string): Promise<void> {
  const wanted = resolve(directory)
  if (await isDirectory(wanted)) return
  const parent = dirname(wanted)
  if (parent !== wanted) await createDirectory(parent)
  // Not `recursive`: Node loops forever if mkdir fails with ENOENT below an existing directory, as in procfs.
  try {
    await mkdir(wanted, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!(await isDirectory(wanted))) throw error
  }
  await fsyncDirectory(parent)
}

const isDirectory = async (path: string) => (await stat(path, { throwIfNoEntry: false }))?.isDirectory() ?? false

/** The bytes of a file, also as they come. */
type Content = Buffer | string | AsyncIterable<Buffer>

/** Writes a new private file (0600); durable once its directory is fsynced. */
export async function writeNew(file: string, content: Content): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(content)
  await handle.sync()
}

/** Creates a private file (0600) if it is missing, for the owner of its directory. */
export function ensurePrivateFile(file: string) {
  closeSync(openSync(file, 'a', 0o600))
  giveToOwner(file)
}

/** The owner of a path, if this process is root; otherwise undefined. */
export function ownerFor(path: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = statSync(path)
  return uid === 0 ? undefined : { uid, gid }
}

/** As root, gives a new file to the owner of `like` (default: its directory), so that the service can use it. */
export function giveToOwner(file: string, like = dirname(file)) {
  const owner = ownerFor(like)
  if (owner) chownSync(file, owner.uid, owner.gid)
}

/**
 * Replaces a private file (0600) by the result of `change`: atomically, durably, and locked between processes. `change`
 * gets undefined if the file is missing; if it throws, nothing changes. Of a symbolic link the target is replaced.
 */
export async function updateFile(path: string, change: (text: string | undefined) => string): Promise<void> {
  await createDirectory(dirname(path))
  // One lock for all links to a file.
  const file = (await realpath(path).catch(ignoreMissing)) ?? path
  using lock = new FileLock(`${file}.lock`)
  await acquireWithin(lock, 10_000)
  const text = await readFile(file, 'utf8').catch(ignoreMissing)
  await replaceFile(file, change(text), text === undefined ? undefined : file)
}

/** Only ENOENT means missing: any other error could be a failing disk. */
export function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Creates or replaces a private file atomically and durably. As root, it belongs to the owner of `before` or its folder. */
export async function replaceFile(file: string, content: Content, before?: string) {
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, content)
    giveToOwner(temporary, before)
    await rename(temporary, file)
  } finally {
    await rm(temporary, { force: true })
  }
  await fsyncDirectory(dirname(file))
}

// Node has no flock, so an exclusive SQLite transaction serves as one. The kernel releases it with the process, so a
// lock is never stale. Never remove the lock file: two processes could then lock two files of the same name.

/** An exclusive lock between processes, on a file of its own. */
export class FileLock implements Disposable {
  readonly #file: string
  readonly #database: Database

  /** @throws when the lock file cannot be opened or created. */
  constructor(file: string, { timeoutMs = 0 } = {}) {
    this.#file = file
    this.#database = openFile(file, { timeout: timeoutMs })
  }

  /** Blocks this process up to `timeoutMs`. @throws an error that `isBusy` if another process holds the lock. */
  acquire() {
    // In-memory journal: otherwise each lock creates and deletes a file.
    this.#database.exec('pragma journal_mode = memory; begin exclusive')
    giveToOwner(this.#file)
  }

  release() {
    this.#database.exec('rollback')
  }

  /** Closes the lock file, and releases the lock if held. Idempotent. */
  [Symbol.dispose]() {
    this.#database.close()
  }
}

export const isBusy = (error: unknown): boolean => codeOf(error) === 'SQLITE_BUSY'

// Polls: a blocking wait would stop the event loop.
async function acquireWithin(lock: FileLock, timeoutMs: number) {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return lock.acquire()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
    await sleep(20)
  }
}
