import {
  bytes,
  forUpdateSkipLocked,
  int8,
  join,
  name,
  now,
  type Sql,
  type Statement,
  sql,
  strict,
} from '@domains-and-files/persistence'
import type { SavedBlob } from '../blobs/blob-store.ts'
import { tooManyUploads } from '../errors.ts'

const uploads = name('uploads')

/** Resumable uploads, in PostgreSQL or in `uploads.sqlite` of DATA_DIR. Times are milliseconds since 1970. */
export const uploadMigrations: Statement[] = [
  sql`
  create table ${uploads} (
    id text primary key,
    owner text not null, -- a username
    path text not null,
    metadata text not null, -- as it was sent
    conditions text not null, -- JSON
    length ${int8}, -- null: not yet known
    size ${int8} not null, -- bytes that are durable
    state text, -- of the store
    tail ${bytes},
    publishing text, -- the digest of a content that the catalog may have been given
    outcome text, -- JSON: the headers that told its end; null: unfinished
    is_ended integer not null, -- its bytes are removed
    expires_at ${int8} not null, -- or when it was deleted
    writer text,
    writer_until ${int8} not null,
    epoch integer not null -- writers that fell silent
  ) ${strict};
  create index uploads_by_owner on ${uploads} (owner) where outcome is null and is_ended = 0;
  create index uploads_by_expiry on ${uploads} (expires_at)`,
  sql`
  alter table ${uploads} drop column conditions;
  alter table ${uploads} drop column publishing;
  alter table ${uploads} drop column writer`,
  sql`
  alter table ${uploads} add column tried integer not null default 0;
  update ${uploads} set expires_at = expires_at - 86400000 where is_ended = 1`,
]

/** A resumable upload: its row. */
export interface Upload extends SavedBlob {
  id: string
  owner: string
  path: string
  metadata: string
  length: number | null
  outcome: string | null
  /** It has all bytes, and its end was not refused since they came: the file may be stored. */
  tried: 0 | 1
  /** Expired, or deleted. */
  isEnded: 0 | 1
  expiresAt: number
  /** 0: nobody writes to it. */
  writerUntil: number
  epoch: number
}

export type NewUpload = Pick<Upload, 'owner' | 'path' | 'metadata' | 'length'>

/** What a writer records. */
export type UploadChange = Partial<SavedBlob & Pick<Upload, 'length' | 'outcome' | 'tried'>>

/** A writer: its upload, as long as its epoch is that of the row. */
type Lease = Pick<Upload, 'id' | 'epoch'>

const columns = sql`id, owner, path, metadata, length, size, state, tail, outcome, tried, epoch,
  case when expires_at <= ${now} then 1 else 0 end "isEnded", expires_at "expiresAt", writer_until "writerUntil"`

/** How long the writer of an upload may be silent before another one takes over. */
const silenceMs = 10_000
const forgottenMs = 86_400_000
const maxUnfinished = 100
const unsynced = async () => {}

/** The rows of resumable uploads. A writer has a lease in its row, so that any replica takes the next request. */
export class UploadTable {
  readonly #sql: Sql
  readonly #lifetimeMs: number
  readonly #sync: () => Promise<void>

  /** `sync`: what is committed survives a power cut, where it does not by itself. Leases need not. */
  constructor(database: Sql, lifetimeMs: number, sync = unsynced) {
    this.#sql = database
    this.#lifetimeMs = lifetimeMs
    this.#sync = sync
  }

  /** @throws {HttpError} `too_many_uploads`. */
  async create(id: string, { owner, path, metadata, length }: NewUpload): Promise<Upload> {
    const created = await this.#sql.transaction(async (transaction) => {
      // Uploads that one user creates at once are counted one after another.
      if (transaction.dialect === 'postgres')
        await transaction.get(
          sql`select pg_advisory_xact_lock(hashtext('uploads'), hashtext(${owner}))`,
        )
      const unfinished = await transaction.all(sql`select 1 from ${uploads}
        where owner = ${owner} and outcome is null and is_ended = 0 and expires_at > ${now}`)
      if (unfinished.length >= maxUnfinished) throw tooManyUploads(maxUnfinished)
      return transaction.all<Upload>(sql`
        insert into ${uploads} (id, owner, path, metadata, length, size, is_ended, expires_at, writer_until, epoch)
        values (${id}, ${owner}, ${path}, ${metadata}, ${length}, 0, 0, ${now} + ${this.#lifetimeMs}, 0, 0)
        returning ${columns}`)
    })
    await this.#sync()
    return created[0] as Upload // The row that was inserted.
  }

  async find(id: string): Promise<Upload | undefined> {
    const row = await this.#sql.get<Upload>(sql`select ${columns} from ${uploads} where id = ${id}`)
    // Its writer may have committed the row just now.
    if (row?.writerUntil) await this.#sync()
    return row
  }

  /** The lease of the only writer of an upload; undefined while another is heard of, or when it has ended. */
  acquire(id: string): Promise<Upload | undefined> {
    return this.#sql.get(sql`update ${uploads} set ${heard(this.#lifetimeMs)},
        epoch = epoch + case when writer_until = 0 then 0 else 1 end
      where id = ${id} and expires_at > ${now} and writer_until <= ${now} returning ${columns}`)
  }

  /**
   * Records a change durably, and prolongs the lease; the upload expires so many milliseconds later. False when another
   * writer has it: then nothing more may be recorded.
   */
  async update(lease: Lease, change: UploadChange, expiresInMs = this.#lifetimeMs) {
    const assignments = Object.entries(change).map(([column, value]) =>
      sql([`${column} = `, ''], value),
    )
    const changed = await this.#assign(lease, join([...assignments, heard(expiresInMs)]))
    if (assignments.length > 0) await this.#sync()
    return changed > 0
  }

  async release(lease: Lease): Promise<void> {
    await this.#assign(lease, sql`writer_until = 0`)
  }

  /** Ends what has expired, some at a time, and forgets what did so long ago. Returns what has bytes to remove. */
  async expire(): Promise<Upload[]> {
    await this.#sql.run(
      sql`delete from ${uploads} where is_ended = 1 and expires_at <= ${now} - ${forgottenMs}`,
    )
    return this.#sql.all<Upload>(sql`update ${uploads} set is_ended = 1, tail = null where id in (
      select id from ${uploads} where is_ended = 0 and expires_at <= ${now} and writer_until <= ${now}
      limit 100 ${forUpdateSkipLocked}) returning ${columns}`)
  }

  /** For the only process at its start: no writer is left of the one before. Returns the ids that have saved bytes. */
  async restart(): Promise<Set<string>> {
    await this.#sql.run(sql`update ${uploads} set writer_until = 0 where writer_until > 0`)
    const rows = await this.#sql.all<{ id: string }>(
      sql`select id from ${uploads} where outcome is null and is_ended = 0`,
    )
    return new Set(rows.map(({ id }) => id))
  }

  #assign({ id, epoch }: Lease, assignments: Statement): Promise<number> {
    return this.#sql.run(
      sql`update ${uploads} set ${assignments} where id = ${id} and epoch = ${epoch} and writer_until > 0`,
    )
  }
}

/** Of a writer: it has its lease, and the upload its time, from now on. */
const heard = (expiresInMs: number) =>
  sql`writer_until = ${now} + ${silenceMs}, expires_at = ${now} + ${expiresInMs}`
