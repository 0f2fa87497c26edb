import { randomUUID } from 'node:crypto'
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Statement } from 'better-sqlite3'
import { blobMode, blobPathOf, folderMode } from '../blobs/blob-path.ts'
import type { Database } from './database.ts'

/** Contents by their digest. */
export type Contents = ReadonlyMap<string, Uint8Array>

/**
 * Contents whose files are written and not flushed. Until they are, their bytes lie in the catalog as well, committed
 * together with what refers to them: so many small ones wait for the disk once. What a loss of power takes of their
 * files is written anew from there.
 */
export class Unflushed {
  readonly #dataDir: string
  readonly #db: Database
  readonly #add: Statement<[string, number, Uint8Array]>
  readonly #drop: Statement<[string]>
  readonly #forget: Statement<[number]>
  readonly #folders = new Set<string>()
  #generation: number

  constructor(db: Database, dataDir: string) {
    this.#db = db
    this.#dataDir = dataDir
    this.#add = db.prepare('insert or replace into unflushed values (?, ?, ?)')
    this.#drop = db.prepare('delete from unflushed where digest = ?')
    this.#forget = db.prepare('delete from unflushed where generation <= ?')
    const newest = db.prepare<[], number | null>('select max(generation) from unflushed').pluck()
    this.#generation = (newest.get() ?? 0) + 1
  }

  /** Writes their files, before anything refers to them. Throws what the disk says; a file is there whole or not at all. */
  write(contents: Contents): void {
    for (const [digest, bytes] of contents) this.#write(digest, bytes)
  }

  /** Keeps their bytes: to be committed with what refers to them. */
  keep(contents: Contents): void {
    for (const [digest, bytes] of contents) this.#add.run(digest, this.#generation, bytes)
  }

  /** Nothing refers to it any more: to be committed with that. */
  drop(digest: string): void {
    this.#drop.run(digest)
  }

  /** The number of all that is there by now: once the whole disk has been flushed after this, it can be forgotten. */
  close(): number {
    this.#generation += 1
    return this.#generation - 1
  }

  forget(generation: number): void {
    this.#forget.run(generation)
  }

  /** Writes every file anew, whatever it is like: what is in the memory of the system need not be on the disk. */
  restore(): { bytes: number; failed: number } {
    const kept = this.#db.prepare<[], { digest: string; bytes: Buffer }>(
      'select digest, bytes from unflushed',
    )
    const done = { bytes: 0, failed: 0 }
    for (const { digest, bytes } of kept.iterate()) {
      done.bytes += bytes.length
      try {
        this.#write(digest, bytes)
      } catch {
        done.failed += 1
      }
    }
    return done
  }

  #write(digest: string, bytes: Uint8Array) {
    const file = join(this.#dataDir, 'blobs', ...blobPathOf(digest))
    this.#ensure(dirname(file))
    const draft = join(this.#dataDir, 'tmp', randomUUID())
    try {
      writeWhole(draft, bytes)
      renameSync(draft, file)
    } catch (error) {
      rmSync(draft, { force: true })
      throw error
    }
  }

  #ensure(folder: string) {
    if (this.#folders.has(folder)) return
    mkdirSync(folder, { recursive: true, mode: folderMode })
    this.#folders.add(folder)
  }
}

/** The digests of what is unflushed; nothing is in a database that no service has opened which leaves anything so. */
export function unflushedIn(db: Database): Set<string> {
  const has = db.prepare("select 1 from sqlite_schema where name = 'unflushed'").get()
  if (!has) return new Set()
  return new Set(db.prepare<[], string>('select digest from unflushed').pluck().all())
}

function writeWhole(file: string, bytes: Uint8Array) {
  const handle = openSync(file, 'wx', blobMode)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at)
  } finally {
    closeSync(handle)
  }
}
