import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { unreadable } from '@domains-and-files/persistence'
import type { Statement } from 'better-sqlite3'
import {
  blobPathOf,
  type CompressedCoding,
  type ContentCoding,
  contentCodings,
  encodedForms,
} from '../blobs/blob-path.ts'
import { blobDatabaseFile } from '../blobs/disk/blob-database.ts'
import { prepareDigests } from '../blobs/disk/blob-statements.ts'
import { hashBytes, hashFile, hashForm } from '../blobs/hashing.ts'
import { type Database, openReader } from '../sqlite/connection.ts'

/** What is wrong with a stored content, or undefined. */
export type Fault = string | undefined

/** Reads stored contents from the content database and from files, and compares them with their digests. */
export class ContentCheck implements Disposable {
  readonly #dataDir: string
  readonly #db: Database | undefined
  #read: Statement<[Buffer, number], Buffer> | undefined

  /** A folder of an earlier version has no content database yet. */
  constructor(dataDir: string) {
    const file = blobDatabaseFile(dataDir)
    this.#dataDir = dataDir
    this.#db = existsSync(file) ? openReader(file) : undefined
  }

  /** Damage of the content database itself, where SQLite can see it. */
  findFault(): Fault {
    try {
      const found = this.#db?.pragma('quick_check(1)', { simple: true }) ?? 'ok'
      return found === 'ok' ? undefined : String(found)
    } catch (error) {
      return unreadable(error)
    }
  }

  /** The digests that begin with two hex digits, of contents and of compressed forms. */
  digests(prefix: string): string[] {
    return this.#db ? prepareDigests(this.#db)(prefix) : []
  }

  /** Looks in the database again at the end: a running service may be moving the content there from its file. */
  async findContentFault(digest: string, size: number): Promise<Fault> {
    try {
      const found =
        this.#hashRow(digest) ?? (await hashFile(this.#fileOf(digest))) ?? this.#hashRow(digest)
      if (!found) return 'its content is missing'
      if (found.size !== size) return `its content has ${found.size} bytes instead of ${size}`
      return found.digest === digest ? undefined : 'its content has been altered'
    } catch (error) {
      return `its content ${unreadable(error)}`
    }
  }

  /** The compressed forms that do not decompress to their content. */
  async findDamagedForms(digest: string, size: number): Promise<CompressedCoding[]> {
    const damaged: CompressedCoding[] = []
    for (const coding of encodedForms) {
      if (!(await this.#isFormSound(digest, coding, size))) damaged.push(coding)
    }
    return damaged
  }

  async #isFormSound(digest: string, coding: CompressedCoding, size: number) {
    try {
      const bytes = this.#row(digest, coding)
      if (bytes) return (await hashBytes(bytes, coding, size)) === digest
      const file = this.#fileOf(digest, coding)
      return !existsSync(file) || (await hashForm(file, coding)) === digest
    } catch {
      return false
    }
  }

  #hashRow(digest: string) {
    const bytes = this.#row(digest, 'identity')
    return bytes && { digest: hash('sha256', bytes), size: bytes.length }
  }

  #row(digest: string, coding: ContentCoding): Buffer | undefined {
    // Here, where a damaged database is reported.
    this.#read ??= this.#db
      ?.prepare<[Buffer, number], Buffer>(
        'select bytes from contents where digest = ? and coding = ?',
      )
      .pluck()
    return this.#read?.get(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding))
  }

  #fileOf(digest: string, coding: ContentCoding = 'identity') {
    return join(this.#dataDir, 'blobs', ...blobPathOf(digest, coding))
  }

  [Symbol.dispose]() {
    this.#db?.close()
  }
}
