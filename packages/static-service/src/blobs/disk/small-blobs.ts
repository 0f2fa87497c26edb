import { DatabaseFiles } from '@domains-and-files/persistence'
import { type Database, isOutage, openReader } from '../../sqlite/connection.ts'
import { GroupCommit } from '../../sqlite/group-commit.ts'
import { WorkerRpc } from '../../sqlite/worker-rpc.ts'
import { type ContentCoding, contentCodings } from '../blob-path.ts'
import type { VerifiedContent, VerifiedContents } from '../integrity.ts'
import { blobDatabaseFile, openBlobDatabase } from './blob-database.ts'
import { digestPrefixes, prepareDigests } from './blob-statements.ts'
import type { BlobCommand, BlobOutcome, BlobWorkerMethods } from './blob-worker.ts'

/**
 * Blobs of up to 32 KiB, and compressed forms of that size, in a SQLite database of their own. Reads are look-ups by
 * key on the calling thread (about 10 µs from the page cache); writes are committed in groups by a worker thread.
 */
export class SmallBlobs implements VerifiedContents {
  readonly #db: Database
  readonly #worker: WorkerRpc<BlobWorkerMethods>
  readonly #files: DatabaseFiles
  readonly #commits: GroupCommit<BlobCommand, BlobOutcome>
  readonly #read
  readonly #size
  readonly #codings
  readonly #verified
  /** Verified files whose record is not committed yet. */
  readonly #recording = new Set<string>()

  constructor(dataDir: string, { isReadOnly = false } = {}) {
    const file = blobDatabaseFile(dataDir)
    this.#db = isReadOnly ? openReader(file) : openBlobDatabase(file)
    this.#files = new DatabaseFiles(file)
    this.#db.pragma('query_only = 1') // From here on only the worker writes.
    this.#worker = new WorkerRpc(new URL('./blob-worker.ts', import.meta.url), file)
    this.#commits = new GroupCommit((commands) => this.#worker.ask('commit', commands), {
      isOutage,
    })
    const where = 'from contents where digest = ? and coding = ?'
    this.#read = this.#db.prepare<[Buffer, number], Buffer>(`select bytes ${where}`).pluck()
    this.#size = this.#db.prepare<[Buffer, number], number>(`select length(bytes) ${where}`).pluck()
    this.#codings = this.#db
      .prepare<[Buffer], number>('select coding from contents where digest = ? order by coding')
      .pluck()
    this.#verified = this.#db
      .prepare<[Buffer, number], string>(
        'select stamp from verified_files where digest = ? and coding = ?',
      )
      .pluck()
  }

  read(digest: string, coding: ContentCoding): Buffer | undefined {
    return this.#read.get(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding))
  }

  sizeOf(digest: string, coding: ContentCoding): number | undefined {
    return this.#size.get(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding))
  }

  /** The codings that a content is stored in here. */
  codings(digest: string): ContentCoding[] {
    return this.#codings
      .all(Buffer.from(digest, 'hex'))
      .flatMap((number) => contentCodings[number] ?? [])
  }

  /** The digests that begin with two hex digits. */
  async digests(prefix: string): Promise<string[]> {
    return this.#isSmall ? prepareDigests(this.#db)(prefix) : this.#worker.ask('digests', prefix)
  }

  /** The first two hex digits of all digests. */
  async prefixes(): Promise<string[]> {
    return this.#isSmall ? digestPrefixes(this.#db) : this.#worker.ask('prefixes', null)
  }

  // The sweep at startup needs no thread then.
  get #isSmall(): boolean {
    return this.#db.prepare('select 1 from contents limit 1 offset 1000').get() === undefined
  }

  /** Bytes of the database, and those of them that rows to come can take. */
  get bytes(): { total: number; reusable: number } {
    const [total = 0, reusable = 0] = ['page_count', 'freelist_count'].map(
      (name) => pragmaNumber(this.#db, name) * pageBytes,
    )
    return { total, reusable }
  }

  /**
   * Gives up to so many bytes of removed rows back to the file system, and the room of the write-ahead logs: of this
   * database and of `others`. Writes wait meanwhile.
   */
  async reclaim(bytes: number, others: string[]): Promise<void> {
    await this.#worker.ask('reclaim', { pages: Math.ceil(bytes / pageBytes), others })
  }

  /** Durable when it resolves. @throws a SQLite error, `SQLITE_FULL` among them. */
  async store(digest: string, coding: ContentCoding, bytes: Uint8Array): Promise<void> {
    await this.#submit({ kind: 'store', digest, coding, bytes })
  }

  /** Removes one coding of a content, or all; says whether the content itself was here. */
  remove(digest: string, coding?: ContentCoding): Promise<boolean> {
    return this.#submit({ kind: 'remove', digest, coding })
  }

  /** Whether a content file has been found to have its digest, and has not changed since. */
  isVerified(file: VerifiedContent): boolean {
    if (this.#recording.has(keyOf(file))) return true
    const { digest, coding, stamp } = file
    const known = this.#verified.get(Buffer.from(digest, 'hex'), contentCodings.indexOf(coding))
    return known === stamp
  }

  /** Remembers in the background that a content file has its digest. If that fails, it is hashed again when needed. */
  recordVerified(file: VerifiedContent): void {
    const key = keyOf(file)
    this.#recording.add(key)
    this.#commits
      .submit({ kind: 'verified', ...file })
      .catch(() => undefined)
      .finally(() => this.#recording.delete(key))
  }

  /** What SQLite finds damaged in the database, or undefined. */
  findFault(): string | undefined {
    const found = this.#db.pragma('quick_check(1)', { simple: true })
    return found === 'ok' ? undefined : String(found)
  }

  /** Does nothing while the worker is alive and its files are there. @throws what ended it, or which file is gone. */
  check(): void {
    this.#worker.check()
    this.#files.check()
  }

  async close(): Promise<void> {
    this.#db.close()
    // Last, since only a writer can fold the WAL into the database.
    await this.#worker.close()
  }

  async #submit(command: BlobCommand): Promise<boolean> {
    const outcome = await this.#commits.submit(command)
    if ('done' in outcome) return outcome.done
    throw Object.assign(new Error(outcome.failed), { code: outcome.code })
  }
}

const pageBytes = 4096

const pragmaNumber = (db: Database, name: string) => Number(db.pragma(name, { simple: true }))

const keyOf = ({ digest, coding, stamp }: VerifiedContent) => `${digest}.${coding}.${stamp}`
