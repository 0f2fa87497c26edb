import type { RowContents } from '@domains-and-files/persistence'
import type { Statement } from 'better-sqlite3'
import { maxSmallBytes } from '../blobs/blob-path.ts'
import { type Database, openReader } from '../sqlite/connection.ts'
import { SmallContentReader } from './small-content-reader.ts'

type Source = Parameters<RowContents['add']>[0]['from']

/** Copies the small contents of a catalog that a target database and other segments lack. */
export class RowCopy implements Disposable {
  readonly #catalog: Database
  readonly #target: Database
  readonly #insert: Statement<[Buffer, Buffer]>
  /** An SQL condition: neither the target nor a segment has the content `b`. */
  readonly #lacks: string

  constructor({
    catalog,
    target,
    to,
    have,
  }: { catalog: string; target: Database; to: string; have: string[] }) {
    this.#target = target
    this.#catalog = openReader(catalog)
    const present = [to, ...have].map((file, at) => {
      this.#catalog.prepare(`attach ? as present${at}`).run(file)
      return `exists (select 1 from present${at}.contents where digest = unhex(b.digest) and coding = 0)`
    })
    this.#lacks = `not (${present.join(' or ')})`
    this.#insert = target.prepare('insert into contents (digest, coding, bytes) values (?, 0, ?)')
  }

  /** Calls `onContent` for each content that is present already. */
  countPresent(onContent: (content: { size: number }) => void): void {
    const sizes = this.#catalog.prepare<[], number>(
      `select size from blobs b where size <= ${maxSmallBytes} and not (${this.#lacks})`,
    )
    for (const size of sizes.pluck().iterate()) onContent({ size })
  }

  /** Copies rows of a database batch by batch, and yields their sizes. A row that SQLite cannot read is left out. */
  *copyRows(file: string): Generator<number[]> {
    const ids = this.#findRows(file)
    const source = openReader(file)
    try {
      const read = source.prepare<[number], { digest: Buffer; bytes: Buffer }>(
        'select digest, bytes from contents where id = ?',
      )
      const copy = this.#target.transaction((batch: number[]) =>
        batch.flatMap((id) => {
          const row = tryRead(read, id)
          if (!row) return []
          this.#insert.run(row.digest, row.bytes)
          return [row.bytes.length]
        }),
      )
      for (let at = 0; at < ids.length; at += batchRows) yield copy(ids.slice(at, at + batchRows))
    } finally {
      source.close()
    }
  }

  /**
   * Copies what is still in files, as earlier versions and their backups store small contents. Returns how many there
   * were.
   */
  async copyRest(from: Source, onContent: (content: { size: number }) => void): Promise<number> {
    using reader = new SmallContentReader(from)
    const digests = this.#catalog
      .prepare<[], string>(
        `select digest from blobs b where size <= ${maxSmallBytes} and ${this.#lacks}`,
      )
      .pluck()
      .all()
    let copied = 0
    for (const digest of digests) {
      const bytes = await reader.read(digest).catch(() => undefined)
      if (!bytes) continue
      this.#insert.run(Buffer.from(digest, 'hex'), bytes)
      onContent({ size: bytes.length })
      copied += 1
    }
    return copied
  }

  [Symbol.dispose]() {
    this.#catalog.close()
  }

  // Ordered by row, so that a cold disk is read from front to back.
  #findRows(file: string): number[] {
    this.#catalog.prepare('attach ? as source').run(file)
    try {
      return this.#catalog
        .prepare<[], number>(
          `select c.id from blobs b
             join source.contents c on c.digest = unhex(b.digest) and c.coding = 0
           where b.size <= ${maxSmallBytes} and ${this.#lacks} order by c.id`,
        )
        .pluck()
        .all()
    } finally {
      this.#catalog.exec('detach source')
    }
  }
}

const batchRows = 256

function tryRead<Row>(read: Statement<[number], Row>, id: number): Row | undefined {
  try {
    return read.get(id)
  } catch {
    return undefined // Reported as missing when all contents are checked.
  }
}
