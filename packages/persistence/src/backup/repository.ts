import { existsSync, statSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { hold } from '../data-dir-lock.ts'
import { createDirectory, ignoreMissing, replaceFile } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { type BlobRef, type OpenBlob, openBlobFile, openBytes } from '../open-blob.ts'
import { openFile } from '../sql/sqlite-files.ts'
import { Snapshot, snapshotFolder } from './snapshot.ts'

/**
 * A folder with backups of one service. `snapshots/<time>` has the rows of one snapshot. The blobs are deduplicated by
 * digest: up to 32 KiB in `blobs.sqlite`, larger ones as `blobs/<2 digits>/<digest>`. A snapshot gets its final name
 * once all of it is durable. Unreferenced blobs are reused by the next backup, or pruned.
 */
export class Repository implements Disposable {
  readonly folder: string
  readonly #only: string | undefined
  readonly #unlock: (() => void) | undefined
  readonly #small: Database
  readonly #find
  readonly #sizeOf
  readonly #insert

  /** Opens a repository, or one of its snapshots, for reading. Works on a read-only disk. */
  static openReader(path: string): Repository {
    const isSnapshot = basename(dirname(path)) === 'snapshots'
    return isSnapshot
      ? new Repository(dirname(dirname(path)), { isReadOnly: true, only: basename(path) })
      : new Repository(path, { isReadOnly: true })
  }

  /**
   * Opens a repository for writing, and creates it if missing.
   * @throws {DataDirError} while another process writes to it, or if it has backups of another service.
   */
  static async openWriter(folder: string, service: string): Promise<Repository> {
    await refuseOtherFiles(folder)
    await createDirectory(join(folder, 'blobs'))
    await createDirectory(join(folder, 'snapshots'))
    const repository = new Repository(folder, { isReadOnly: false })
    try {
      if ((await repository.#finished()).length > 0) await repository.snapshot(service)
      await repository.removePartials()
      return repository
    } catch (error) {
      repository[Symbol.dispose]()
      throw error
    }
  }

  private constructor(folder: string, { isReadOnly, only }: { isReadOnly: boolean; only?: string }) {
    this.folder = folder
    this.#only = only
    const busy = `Another backup into ${folder} is running: wait until it has finished.`
    if (!isReadOnly) this.#unlock = hold(join(folder, 'lock'), busy)
    const file = join(folder, 'blobs.sqlite')
    // Where it is missing, a restore can still have the large blobs.
    const isRead = isReadOnly && existsSync(file)
    this.#small = openFile(isReadOnly && !isRead ? ':memory:' : file, { readonly: isRead })
    if (!isRead) this.#small.exec(schema)
    const where = 'from blobs where digest = ?'
    this.#find = this.#small.prepare<[Buffer], Buffer>(`select bytes ${where}`).pluck()
    this.#sizeOf = this.#small.prepare(`select length(bytes) ${where}`).pluck()
    this.#insert = this.#small.prepare('insert or replace into blobs (digest, bytes) values (?, ?)')
  }

  async snapshots(): Promise<Snapshot[]> {
    return Promise.all((await this.#finished()).map((name) => Snapshot.open(this.folder, name)))
  }

  /** The snapshot named at opening, or the newest. @throws {DataDirError} if there is none, or it is of another service. */
  async snapshot(service?: string): Promise<Snapshot> {
    const name = this.#only ?? (await this.#finished()).at(-1)
    if (!name) throw new DataDirError(`There is no finished backup in ${this.folder}.`)
    const snapshot = await Snapshot.open(this.folder, name)
    const found = snapshot.manifest.service
    if (service === undefined || found === service) return snapshot
    throw new DataDirError(`This is a backup of the ${found}, not of the ${service}.`)
  }

  async #names(): Promise<string[]> {
    return (await readdir(join(this.folder, 'snapshots')).catch(ignoreMissing)) ?? []
  }

  async #finished(): Promise<string[]> {
    return (await this.#names()).filter((name) => !isPartial(name)).toSorted()
  }

  has({ digest, size }: BlobRef): boolean {
    if (size > maxSmallBytes) return statSync(this.#fileOf(digest), { throwIfNoEntry: false })?.size === size
    return this.#sizeOf.get(Buffer.from(digest, 'hex')) === size
  }

  async open({ digest, size }: BlobRef): Promise<OpenBlob | undefined> {
    if (size <= maxSmallBytes) {
      const bytes = this.#find.get(Buffer.from(digest, 'hex'))
      return bytes && openBytes(bytes)
    }
    return openBlobFile(this.#fileOf(digest))
  }

  /** Stores small blobs durably, and replaces existing ones. */
  addSmall(blobs: SmallBlob[]): void {
    const insertAll = this.#small.transaction(() => {
      for (const { digest, bytes } of blobs) this.#insert.run(Buffer.from(digest, 'hex'), bytes)
    })
    if (blobs.length > 0) insertAll.immediate()
  }

  /** Stores a large blob durably, and replaces an existing one. @throws what `pieces` throw. */
  async addLarge(digest: string, pieces: AsyncIterable<Buffer>): Promise<void> {
    const file = this.#fileOf(digest)
    await createDirectory(dirname(file))
    await replaceFile(file, pieces)
  }

  /** Removes blobs that no finished backup refers to. */
  async #prune(): Promise<void> {
    const db = this.#small
    db.exec(`pragma temp_store = file;
      create temp table needed (digest blob primary key) without rowid`)
    const need = db.prepare('insert or ignore into needed values (?)')
    for (const snapshot of await this.snapshots())
      for await (const refs of snapshot.blobs()) for (const { digest } of refs) need.run(Buffer.from(digest, 'hex'))
    db.exec('delete from blobs where digest not in needed')
    const isNeeded = db.prepare('select 1 from needed where digest = ?')
    const blobs = join(this.folder, 'blobs')
    for (const shard of await readdir(blobs)) {
      for (const name of await readdir(join(blobs, shard))) {
        if (/^[0-9a-f]{64}$/.test(name) && isNeeded.get(Buffer.from(name, 'hex'))) continue
        await rm(join(blobs, shard, name))
      }
    }
    db.exec('drop table needed; vacuum')
  }

  /** Removes all backups but the newest `count`, and blobs without references. */
  async keepNewest(count: number): Promise<void> {
    // Rename first: after an interruption the next backup removes `.partial` snapshots.
    for (const name of (await this.#finished()).slice(0, -count)) {
      const folder = snapshotFolder(this.folder, name)
      await rename(folder, `${folder}.partial`)
    }
    await this.removePartials()
    await this.#prune()
  }

  /** Removes all data that no finished backup needs; the whole folder if there is no finished backup. */
  async discard(): Promise<void> {
    await this.removePartials()
    if ((await this.#finished()).length > 0) await this.#prune()
    else {
      this[Symbol.dispose]()
      await rm(this.folder, { recursive: true })
    }
  }

  async removePartials(): Promise<void> {
    for (const name of (await this.#names()).filter(isPartial))
      await rm(snapshotFolder(this.folder, name), { recursive: true })
  }

  [Symbol.dispose]() {
    this.#small.close()
    this.#unlock?.()
  }

  #fileOf(digest: string) {
    return join(this.folder, 'blobs', digest.slice(0, 2), digest)
  }
}

export interface SmallBlob {
  digest: string
  bytes: Buffer
}

/** Blobs up to this many bytes are rows, since a file for each would cost an fsync for each. */
export const maxSmallBytes = 32_768

const ownNames = ['snapshots', 'blobs', 'blobs.sqlite', 'blobs.sqlite-journal', 'lock']

// `discard` may remove the whole folder, so it must contain nothing else.
async function refuseOtherFiles(folder: string) {
  const names = await readdir(folder).catch(() => [])
  const other = names.find((name) => !ownNames.includes(name))
  if (other === undefined) return
  throw new DataDirError(`There is something else in ${folder}, ${other}: choose another folder.`)
}

// Rollback journal: WAL cannot be read on a read-only disk. Integer key: rows are appended. With the digest as key, each
// insert would dirty a random page.
const schema = `pragma journal_mode = delete; pragma synchronous = full; pragma temp_store = memory;
  create table if not exists blobs (id integer primary key, digest blob not null unique, bytes blob not null) strict`

const isPartial = (name: string) => name.endsWith('.partial')
