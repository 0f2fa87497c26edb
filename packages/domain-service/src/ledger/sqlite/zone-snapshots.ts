import type { Database } from 'better-sqlite3'
import type { Snapshot } from '../ledger.ts'
import { compress, decodeSnapshot, digestOf, encodeSnapshot } from '../snapshot-encoding.ts'

/** Stores each distinct zone once, compressed, by the SHA-256 of its text. */
export class ZoneSnapshots {
  readonly #has
  readonly #insert
  readonly #find

  constructor(database: Database) {
    this.#has = database.prepare<[string], number>('select 1 from zones where digest = ?').pluck()
    this.#insert = database.prepare<[string, Buffer]>(
      'insert into zones (digest, snapshot) values (?, ?)',
    )
    this.#find = database
      .prepare<[string], Buffer>('select snapshot from zones where digest = ?')
      .pluck()
  }

  /** @returns its digest. */
  put(snapshot: Snapshot): string {
    const text = encodeSnapshot(snapshot)
    const digest = digestOf(text)
    if (this.#has.get(digest) === undefined) this.#insert.run(digest, compress(text))
    return digest
  }

  get(digest: string): Snapshot {
    const packed = this.#find.get(digest)
    if (!packed) throw new Error(`zone snapshot ${digest} is missing`)
    return decodeSnapshot(packed)
  }
}
