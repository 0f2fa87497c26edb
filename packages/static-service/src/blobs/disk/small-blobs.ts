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
  readonly #verified
  /** Verified files whose record is not yet committed. */
  readonly #recording = new Set<string>()

  constructor(dataDir: string, { isReadOnly = false } = {}) {
    this.#sql = openBlobDatabase(dataDir, isReadOnly ? 'read' : 'create')
    const { database } = this.#sql
    database.pragma('query_only = 1') // From here on only the worker writes.
    this.#worker = new WorkerRpc(new URL('./blob-worker.ts', import.meta.url), dataDir)
    this.#commits = new GroupCommit<BlobCommand, void>(
      (commands) => this.#worker.ask('commit', commands),
      () => true, // Other failures are outcomes of single commands.
    )
    const one = <Value>(query: string) => database.prepare<[string, number], Value>(`${query} where ${isKey}`).pluck()
    this.#read = one<Buffer>('select bytes from contents')
    this.#size = one<number>('select length(bytes) from contents')
    this.#verified = one<string>('select stamp from verified_files')
  }

  read(digest: string, coding: ContentCoding): Buffer | undefined {
    return this.#read.get(...keyOf(digest, coding))
  }

  sizeOf(digest: string, coding: ContentCoding): number | undefined {
    return this.#size.get(...keyOf(digest, coding))
  }

  digests(prefix: string): string[] {
    const query = 'select distinct lower(hex(digest)) from contents where digest between unhex(?) and unhex(?)'
    return this.#list(query, prefix.padEnd(64, '0'), prefix.padEnd(64, 'f'))
  }

  /** The first bytes of all digests, from the index: one look-up each. */
  prefixes(): string[] {
    const query = `with recursive found as (
        select min(digest) digest from contents
        union all
        select (select min(digest) from contents where digest > unhex(hex(substr(found.digest, 1, 1)) || ?))
        from found where digest is not null)
      select lower(hex(substr(digest, 1, 1))) from found where digest is not null`
    return this.#list(query, 'f'.repeat(62))
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

  /** Replaces differing bytes: they are damaged. Durable when it resolves. @throws a SQLite error, such as `SQLITE_FULL`. */
  store(digest: string, coding: ContentCoding, bytes: Uint8Array): Promise<void> {
    return this.#commits.submit([[insert, ...keyOf(digest, coding), bytes]])
  }

  /** Removes a blob with its compressed forms, and what is recorded about its files. */
  remove(digest: string): Promise<void> {
    return this.#commits.submit([
      ['delete from contents where digest = unhex(?)', digest],
      ['delete from verified_files where digest = unhex(?)', digest],
    ])
  }

  removeForm(digest: string, coding: ContentCoding): Promise<void> {
    return this.#commits.submit([[`delete from contents where ${isKey}`, ...keyOf(digest, coding)]])
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
      .submit([
        [
          'insert or replace into verified_files values (unhex(?), ?, ?)',
          ...keyOf(file.digest, file.coding),
          file.stamp,
        ],
      ])
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

  #list(query: string, ...values: string[]) {
    return this.#sql.database
      .prepare<string[], string>(query)
      .pluck()
      .all(...values)
  }
}

// Readers of the log finish within milliseconds; gives up after 5 s.
const [maxTruncations, truncateMs] = [50, 100]

const isKey = 'digest = unhex(?) and coding = ?'
const insert = `insert into contents (digest, coding, bytes) values (unhex(?), ?, ?)
  on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`

const keyOf = (digest: string, coding: ContentCoding) => [digest, contentCodings.indexOf(coding)] as const

const nameOf = ({ digest, coding, stamp }: VerifiedContent) => `${digest}.${coding}.${stamp}`
