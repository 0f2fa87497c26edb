import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unreadable } from '@domains-and-files/persistence'
import type { Statement } from 'better-sqlite3'
import { blobPathOf } from '../blobs/blob-path.ts'
import { type Database, openReader } from '../sqlite/connection.ts'

/** Reads small contents from databases of a folder, and from its files, where earlier versions stored them. */
export class SmallContentReader implements Disposable {
  readonly #folder: string
  readonly #databases: Database[]
  readonly #reads: Statement<[Buffer], Buffer>[]
  readonly #sizes: Statement<[Buffer], number>[]

  /** A database that does not exist is skipped: a folder of an earlier version has none. */
  constructor({ folder, databases }: { folder: string; databases: string[] }) {
    const files = databases.map((name) => join(folder, name)).filter((file) => existsSync(file))
    const where = 'from contents where digest = ? and coding = 0'
    this.#folder = folder
    this.#databases = files.map((file) => openReader(file))
    this.#reads = this.#databases.map((db) =>
      db.prepare<[Buffer], Buffer>(`select bytes ${where}`).pluck(),
    )
    this.#sizes = this.#databases.map((db) =>
      db.prepare<[Buffer], number>(`select length(bytes) ${where}`).pluck(),
    )
  }

  /** Looks in the databases again at the end: a running service may be moving the content there from its file. */
  async read(digest: string): Promise<Buffer | undefined> {
    return this.#readRow(digest) ?? (await this.#readFile(digest)) ?? this.#readRow(digest)
  }

  /** What is wrong with a content; only its size is compared unless all is hashed. */
  async findFault({ digest, size }: { digest: string; size: number }, isHashed: boolean) {
    try {
      const found = isHashed ? undefined : this.#findSize(digest)
      if (found === size) return undefined
      const bytes = await this.read(digest)
      if (!bytes) return 'is missing'
      if (bytes.length !== size) return `has ${bytes.length} bytes instead of ${size}`
      return hash('sha256', bytes) === digest ? undefined : 'has been altered'
    } catch (error) {
      return unreadable(error)
    }
  }

  [Symbol.dispose]() {
    for (const db of this.#databases) db.close()
  }

  #readRow(digest: string): Buffer | undefined {
    return first(this.#reads, Buffer.from(digest, 'hex'))
  }

  #findSize(digest: string): number | undefined {
    return first(this.#sizes, Buffer.from(digest, 'hex'))
  }

  #readFile(digest: string): Promise<Buffer | undefined> {
    const file = join(this.#folder, 'blobs', ...blobPathOf(digest))
    return readFile(file).catch((error: NodeJS.ErrnoException): undefined => {
      if (error.code !== 'ENOENT') throw error
    })
  }
}

function first<Value>(statements: Statement<[Buffer], Value>[], key: Buffer): Value | undefined {
  for (const statement of statements) {
    const found = statement.get(key)
    if (found !== undefined) return found
  }
  return undefined
}
