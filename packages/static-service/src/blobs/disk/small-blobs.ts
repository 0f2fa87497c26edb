import { setTimeout as wait } from 'node:timers/promises'
import type { SqliteSql } from '@domains-and-files/persistence'
import type { ContentCoding } from '../../rfc9110/content-codings.ts'
import { GroupCommit, WorkerRpc } from '../../sqlite/worker-commits.ts'
import { contentCodings } from '../blob-path.ts'
import type { VerifiedContent, VerifiedContents } from '../integrity.ts'
import { openBlobDatabase } from './blob-database.ts'
import type { BlobCommand, BlobWorkerMethods } from './blob-worker.ts'

/**
 * Blobs of up to 32 KiB, and compressed forms of that size, in a SQLite database of their own. Reads are look-ups by
 * key on the calling thread (about 10 µs from the page cache); writes are committed in groups by a worker thread.
 */
export class SmallBlobs implements VerifiedContents {
  readonly #sql: SqliteSql
  readonly #worker: WorkerRpc<BlobWorkerMethods>
  readonly #commits
  readonly #read
  readonly #size
  readonly #digests
  readonly #prefixAfter
  readonly #verified
  /** Verified files whose record is not yet committed. */
  readonly #recording = new Set<string>()

  constructor(dataDir: string, { isReadOnly = false } = {}) {
    this.#sql = openBlobDatabase(dataDir, isReadOnly ? 'read' : 'create')
    const { database } = this.#sql
    database.pragma('query_only = 1') // From here on only the worker writes.
    this.#worker = new WorkerRpc(new URL('./blob-worker.ts', import.meta.url), dataDir)
    this.#commits = new GroupCommit<BlobCommand, boolean>(
      (commands) => this.#worker.ask('commit', commands),
      () => true, // Other failures are outcomes of single commands.
    )
    const ofKey = 'where digest = ? and coding = ?'
    const one = <Value>(query: string) => database.prepare<[Buffer, number], Value>(`${query} ${ofKey}`).pluck()
    this.#read = one<Buffer>('select bytes from contents')
    this.#size = one<number>('select length(bytes) from contents')
    this.#verified = one<string>('select stamp from verified_files')
    this.#digests = database
      .prepare<[Buffer, Buffer], string>(
        'select distinct lower(hex(digest)) from contents where digest between ? and ?',
      )
      .pluck()
    this.#prefixAfter = database
      .prepare<[Buffer], string>('select lower(hex(substr(min(digest), 1, 1))) from contents where digest > ?')
      .pluck()
  }

  read(digest: string, coding: ContentCoding): Buffer | undefined {
    return this.#read.get(...keyOf(digest, coding))
  }

  sizeOf(digest: string, coding: ContentCoding): number | undefined {
    return this.#size.get(...keyOf(digest, coding))
  }

  digests(prefix: string): string[] {
    return this.#digests.all(firstOf(prefix), lastOf(prefix))
  }

  prefixes(): string[] {
    const found: string[] = []
    let next = this.#prefixAfter.get(Buffer.alloc(0))
    while (next) {
      found.push(next)
      next = this.#prefixAfter.get(lastOf(next))
    }
    return found
  }

  /**
   * Gives the pages of removed rows back to the file system, and truncates the write-ahead logs of this database and of
   * `others`. Returns whether the log of this database is empty: no reader needed it.
   */
  truncateLogs(others: string[] = []): Promise<boolean> {
    return this.#worker.ask('truncateLogs', others)
  }

  /** Erases removed rows: until the log is checkpointed, they are overwritten in the log only. */
  async emptyLog(): Promise<void> {
    for (let tries = 0; tries < maxTruncations; tries += 1) {
      if (await this.truncateLogs()) return
      await wait(truncateMs)
    }
  }

  /** Durable when it resolves. @throws a SQLite error, `SQLITE_FULL` among them. */
  async store(digest: string, coding: ContentCoding, bytes: Uint8Array): Promise<void> {
    await this.#commits.submit({ kind: 'store', digest, coding, bytes })
  }

  /** Removes one coding of a blob, or all; returns whether that coding, or the blob itself, was here. */
  remove(digest: string, coding?: ContentCoding): Promise<boolean> {
    return this.#commits.submit({ kind: 'remove', digest, coding })
  }

  /** Whether a file has matched its digest, and has not changed since. */
  isVerified(file: VerifiedContent): boolean {
    if (this.#recording.has(nameOf(file))) return true
    return this.#verified.get(...keyOf(file.digest, file.coding)) === file.stamp
  }

  /** Records in the background that a file matches its digest. If that fails, the file is hashed again when needed. */
  recordVerified(file: VerifiedContent): void {
    const name = nameOf(file)
    this.#recording.add(name)
    this.#commits
      .submit({ kind: 'verified', ...file })
      .catch(() => undefined)
      .finally(() => this.#recording.delete(name))
  }

  /** The first damage that SQLite finds in the database, or undefined. */
  findFault(): string | undefined {
    const found = this.#sql.database.pragma('quick_check(1)', { simple: true })
    return found === 'ok' ? undefined : String(found)
  }

  check(): void {
    if (!this.#sql.isIntact) throw new Error('the files of the content database are gone')
  }

  async close(): Promise<void> {
    await this.#sql.close()
    // Last, since only a writer can fold the WAL into the database.
    await this.#worker.close()
  }
}

// Readers of the log finish within milliseconds; gives up after 5 s.
const [maxTruncations, truncateMs] = [50, 100]

const keyOf = (digest: string, coding: ContentCoding) =>
  [Buffer.from(digest, 'hex'), contentCodings.indexOf(coding)] as const

const firstOf = (prefix: string) => Buffer.from(prefix.padEnd(64, '0'), 'hex')
const lastOf = (prefix: string) => Buffer.from(prefix.padEnd(64, 'f'), 'hex')

const nameOf = ({ digest, coding, stamp }: VerifiedContent) => `${digest}.${coding}.${stamp}`
