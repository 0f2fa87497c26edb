import { createHash, randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createDirectory, fsyncDirectory } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { FileLock, LockBusyError } from '../file-lock.ts'
import type { BlobRef, ReadableBlob } from './archive.ts'
import { readManifest, Snapshot, snapshotFolder } from './snapshot.ts'

/**
 * A folder with backups of one service: `snapshots/<time>`, each with the rows of one moment, and the blobs that they refer
 * to, each once by its digest: up to 32 KiB in `blobs.sqlite`, larger ones as `blobs/<2 digits>/<digest>`. A snapshot has
 * its name once all of it is durable; blobs that no snapshot refers to are used by the next backup, or pruned.
 */
export class Repository implements Disposable {
  readonly folder: string
  readonly #lock: FileLock | undefined
  readonly #small: DatabaseSync | undefined
  readonly #find
  readonly #sizeOf
  readonly #insert

  /** To be read, also from a read-only disk. @throws {DataDirError} when there is no finished backup. */
  static openReader(folder: string): Repository {
    return new Repository(folder, { isReadOnly: true })
  }

  /**
   * To be written to; created if it is missing.
   * @throws {DataDirError} while another process writes to it, and when it has backups of another service.
   */
  static async openWriter(folder: string, service: string): Promise<Repository> {
    await refuseOtherFiles(folder)
    await createDirectory(join(folder, 'blobs'))
    await createDirectory(join(folder, 'snapshots'))
    const repository = new Repository(folder, { isReadOnly: false })
    try {
      const [first] = await repository.snapshots()
      if (first) refuseOtherService(first, service)
      await repository.removePartials()
      return repository
    } catch (error) {
      repository[Symbol.dispose]()
      throw error
    }
  }

  private constructor(folder: string, { isReadOnly }: { isReadOnly: boolean }) {
    this.folder = folder
    if (!isReadOnly) this.#lock = lockRepository(folder)
    const file = join(folder, 'blobs.sqlite')
    // A rollback journal, not a log: a finished repository is read where nothing may be written.
    if (!isReadOnly || existsSync(file))
      this.#small = new DatabaseSync(file, { readOnly: isReadOnly })
    if (!isReadOnly) this.#small?.exec(schema)
    const where = 'from blobs where digest = ?'
    this.#find = this.#small?.prepare(`select bytes ${where}`)
    this.#sizeOf = this.#small?.prepare(`select length(bytes) size ${where}`)
    this.#insert = this.#small?.prepare(
      'insert or replace into blobs (digest, bytes) values (?, ?)',
    )
  }

  /** The finished backups, oldest first. */
  async snapshots(): Promise<Snapshot[]> {
    const names = await readdir(join(this.folder, 'snapshots')).catch(() => [])
    const folders = names.filter(isFinished).toSorted()
    return Promise.all(folders.map(async (name) => this.#snapshot(name)))
  }

  /** One backup by its name, or the newest. @throws {DataDirError} when there is none. */
  async snapshot(name?: string): Promise<Snapshot> {
    const names = (await readdir(join(this.folder, 'snapshots')).catch(ignoreMissing)) ?? []
    const found = name ?? names.filter(isFinished).toSorted().at(-1)
    if (!found) throw new DataDirError(`There is no finished backup in ${this.folder}.`)
    return this.#snapshot(found)
  }

  async #snapshot(name: string) {
    const folder = snapshotFolder(this.folder, name)
    return new Snapshot(folder, await readManifest(folder))
  }

  /** Whether a blob of this size is stored. */
  has({ digest, size }: BlobRef): boolean {
    return this.#size(digest, size) === size
  }

  /** A blob to read, or undefined. */
  async open({ digest, size }: BlobRef): Promise<ReadableBlob | undefined> {
    if (size <= maxSmallBytes) {
      const bytes = this.#find?.get(Buffer.from(digest, 'hex'))?.bytes
      return bytes instanceof Uint8Array ? openBytes(Buffer.from(bytes)) : undefined
    }
    const handle = await open(this.#fileOf(digest), 'r').catch(ignoreMissing)
    if (!handle) return undefined
    const found = await handle.stat()
    return {
      size: found.size,
      async read(start, length) {
        const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, found.size - start)))
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, start)
        return bytes.subarray(0, bytesRead)
      },
      [Symbol.asyncDispose]: () => handle.close(),
    }
  }

  /** Stores small blobs, durably, in place of others under their digests. */
  addSmall(blobs: { digest: string; bytes: Buffer }[]): void {
    if (blobs.length === 0) return
    this.#small?.exec('begin immediate')
    try {
      for (const { digest, bytes } of blobs) this.#insert?.run(Buffer.from(digest, 'hex'), bytes)
      this.#small?.exec('commit')
    } catch (error) {
      if (this.#small?.isTransaction) this.#small.exec('rollback')
      throw error
    }
  }

  /** Copies a large blob, durably, in place of another under its digest. False if the bytes do not have the digest. */
  async addLarge(
    { digest, size }: BlobRef,
    read: ReadableBlob['read'],
    signal: AbortSignal,
  ): Promise<boolean> {
    const file = this.#fileOf(digest)
    const partial = `${file}.${randomUUID()}`
    await createDirectory(dirname(file))
    const hash = createHash('sha256')
    try {
      {
        await using handle = await open(partial, 'wx', 0o600)
        for (let at = 0; at < size; ) {
          signal.throwIfAborted()
          const chunk = await read(at, chunkBytes)
          if (chunk.length === 0) break
          hash.update(chunk)
          await handle.appendFile(chunk)
          at += chunk.length
        }
        await handle.sync()
      }
      if (hash.digest('hex') !== digest) return false
      await rename(partial, file)
      await fsyncDirectory(dirname(file))
      return true
    } finally {
      await rm(partial, { force: true })
    }
  }

  /** Removes blobs that no finished backup refers to. @returns their number. */
  async prune(): Promise<number> {
    const db = this.#small
    if (!db) return 0
    db.exec(`pragma temp_store = file;
      create temp table needed (digest blob primary key) without rowid`)
    const need = db.prepare('insert or ignore into needed values (?)')
    for (const snapshot of await this.snapshots()) {
      for await (const refs of snapshot.blobs()) {
        for (const { digest } of refs) need.run(Buffer.from(digest, 'hex'))
      }
    }
    const { changes } = db.prepare('delete from blobs where digest not in needed').run()
    const isNeeded = db.prepare('select 1 from needed where digest = ?')
    let removed = Number(changes)
    for (const shard of await readdir(join(this.folder, 'blobs'))) {
      for (const name of await readdir(join(this.folder, 'blobs', shard))) {
        if (/^[0-9a-f]{64}$/.test(name) && isNeeded.get(Buffer.from(name, 'hex'))) continue
        await rm(join(this.folder, 'blobs', shard, name))
        removed += 1
      }
    }
    db.exec('drop table needed; vacuum')
    return removed
  }

  /** Removes all but so many of the newest backups, and the blobs that only they needed. @returns how many. */
  async keepNewest(count: number): Promise<number> {
    const names = await readdir(join(this.folder, 'snapshots'))
    const old = names.filter(isFinished).toSorted().slice(0, -count)
    // Without its name it is unfinished: what is interrupted here is removed by the next backup.
    for (const name of old) {
      const folder = snapshotFolder(this.folder, name)
      await rename(folder, `${folder}.partial`)
    }
    await this.removePartials()
    if (old.length > 0) await this.prune()
    return old.length
  }

  /** Removes all that no finished backup needs: the whole folder, if there is none. */
  async discard(): Promise<void> {
    await this.removePartials()
    if ((await this.snapshots()).length > 0) {
      await this.prune()
      return
    }
    this[Symbol.dispose]()
    await rm(this.folder, { recursive: true })
  }

  [Symbol.dispose]() {
    if (this.#small?.isOpen) this.#small.close()
    this.#lock?.close()
  }

  #size(digest: string, expected: number): number | undefined {
    if (expected > maxSmallBytes)
      return statSync(this.#fileOf(digest), { throwIfNoEntry: false })?.size
    const size = this.#sizeOf?.get(Buffer.from(digest, 'hex'))?.size
    return size === undefined ? undefined : Number(size)
  }

  #fileOf(digest: string) {
    return join(this.folder, 'blobs', digest.slice(0, 2), digest)
  }

  /** Removes snapshots that were not finished. */
  async removePartials(): Promise<void> {
    const names = await readdir(join(this.folder, 'snapshots'))
    for (const name of names.filter((each) => !isFinished(each)))
      await rm(join(this.folder, 'snapshots', name), { recursive: true })
  }
}

/** Blobs of up to this many bytes are rows: a file for each would take a flush for each. */
export const maxSmallBytes = 32_768

const chunkBytes = 1_048_576
const ownNames = ['snapshots', 'blobs', 'blobs.sqlite', 'blobs.sqlite-journal', 'lock']

// What else is in the folder would be lost with it.
async function refuseOtherFiles(folder: string) {
  const names = await readdir(folder).catch(() => [])
  const other = names.find((name) => !ownNames.includes(name))
  if (other === undefined) return
  throw new DataDirError(`There is something else in ${folder}, ${other}: choose another folder.`)
}

/** @throws {DataDirError} when a backup is of another service. */
export function refuseOtherService({ manifest }: Snapshot, service: string): void {
  if (manifest.service === service) return
  throw new DataDirError(`This is a backup of the ${manifest.service}, not of the ${service}.`)
}

// Rows are appended: keyed by digest, each would dirty a random page.
const schema = `pragma journal_mode = delete; pragma synchronous = full; pragma temp_store = memory;
  create table if not exists blobs (id integer primary key, digest blob not null unique, bytes blob not null) strict`

const isFinished = (name: string) => !name.endsWith('.partial')

const openBytes = (bytes: Buffer): ReadableBlob => ({
  size: bytes.length,
  read: async (start, length) => bytes.subarray(start, start + length),
  [Symbol.asyncDispose]: async () => undefined,
})

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function lockRepository(folder: string): FileLock {
  const lock = new FileLock(join(folder, 'lock'), { timeoutMs: 3000 })
  try {
    lock.acquire()
    return lock
  } catch (error) {
    lock.close()
    if (!(error instanceof LockBusyError)) throw error
    throw new DataDirError(`Another backup into ${folder} is running: wait until it has finished.`)
  }
}
