import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { SqliteSql } from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../../rfc9110/content-codings.ts'
import { GroupCommit, type Outcome, WorkerRpc } from '../../sqlite/worker-commits.ts'
import type { VerifiedContent, VerifiedContents } from '../stored-blob.ts'

export const blobDatabaseName = 'contents.sqlite'

export const blobDatabaseFile = (dataDir: string) => join(dataDir, blobDatabaseName)

/** Statements with their values, which succeed or fail together. */
export type BlobCommand = [text: string, ...values: unknown[]][]

/** Of the thread that writes to the database: `blob-worker.ts`. */
export type BlobWorkerMethods = {
  /** Durable when it resolves. */
  commit(commands: BlobCommand[]): Promise<Outcome<void>[]>
  /** Truncates the logs of this database and of others without waiting for readers; whether this one is empty. */
  truncateLogs(others: string[]): boolean
}

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
    this.#commits = new GroupCommit<BlobCommand, void>((commands) => this.#worker.ask('commit', commands))
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
    const statement = this.#sql.database.prepare<string[], string>(query).pluck()
    return statement.all(prefix.padEnd(64, '0'), prefix.padEnd(64, 'f'))
  }

  /** Gives the pages of removed rows back to the file system, too. Returns as `BlobWorkerMethods` says. */
  truncateLogs(others: string[] = []): Promise<boolean> {
    return this.#worker.ask('truncateLogs', others)
  }

  /** Erases removed rows: until the log is checkpointed, they are overwritten in the log only. */
  async emptyLog(): Promise<void> {
    // Readers of the log finish within milliseconds; gives up after 5 s.
    for (let tries = 0; tries < 50 && !(await this.truncateLogs()); tries += 1) await wait(100)
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

  isVerified(file: VerifiedContent): boolean {
    if (this.#recording.has(nameOf(file))) return true
    return this.#verified.get(...keyOf(file.digest, file.coding)) === file.stamp
  }

  recordVerified(file: VerifiedContent): void {
    const name = nameOf(file)
    const values = [...keyOf(file.digest, file.coding), file.stamp]
    this.#recording.add(name)
    this.#commits
      .submit([['insert or replace into verified_files values (unhex(?), ?, ?)', ...values]])
      .catch(() => undefined)
      .finally(() => this.#recording.delete(name))
  }

  /** False: the files of the database are gone. */
  get isIntact(): boolean {
    return this.#sql.isIntact
  }

  async close(): Promise<void> {
    await this.#sql.close()
    // Last, since only a writer can fold the WAL into the database.
    await this.#worker.close()
  }
}

const isKey = 'digest = unhex(?) and coding = ?'
const insert = `insert into contents (digest, coding, bytes) values (unhex(?), ?, ?)
  on conflict do update set bytes = excluded.bytes where bytes <> excluded.bytes`

const keyOf = (digest: string, coding: ContentCoding) => [digest, contentCodings.indexOf(coding)] as const

const nameOf = ({ digest, coding, stamp }: VerifiedContent) => `${digest}.${coding}.${stamp}`

// Rows are appended in order of arrival: keyed by digest, each insert would dirty a random page (measured: half the
// speed). Older databases have these tables, but no record of the migration.
const migrations = {
  contents: [
    `create table if not exists contents (
       id integer primary key,
       digest blob not null,
       coding integer not null, -- an index of contentCodings
       bytes blob not null
     ) strict;
     create unique index if not exists contents_by_digest on contents (digest, coding);

     -- Files of blobs that were found to have their digest, and their inode, size and modification time at that moment.
     create table if not exists verified_files (
       digest blob not null,
       coding integer not null,
       stamp text not null,
       primary key (digest, coding)
     ) strict, without rowid;`,
  ],
}

/** Opens the database of small blobs. `create` migrates it, too: only one connection at a time may do so. */
export function openBlobDatabase(dataDir: string, mode: 'read' | 'write' | 'create'): SqliteSql {
  const sql = new SqliteSql({
    file: blobDatabaseFile(dataDir),
    isReadOnly: mode === 'read',
    ...(mode === 'create' && { migrations, isVacuumed: true }),
  })
  if (mode === 'read') return sql
  // Frequent checkpoints keep the log small on a small disk.
  sql.database.pragma('wal_autocheckpoint = 500')
  // Overwrites deleted rows, so that free pages keep no forgotten bytes.
  sql.database.pragma('secure_delete = ON')
  return sql
}
