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
    is_ended integer not null, -- expired, or deleted
    expires_at ${int8} not null, -- of an ended one: when it is forgotten
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
]

/** A resumable upload: its row. */
export interface Upload extends SavedBlob {
  id: string
  owner: string
  path: string
  metadata: string
  length: number | null
  outcome: string | null
  isEnded: 0 | 1
  expiresAt: number
  /** 0: nobody writes to it. */
  writerUntil: number
  epoch: number
}

export type NewUpload = Pick<Upload, 'owner' | 'path' | 'metadata' | 'length'>

/** What a writer records: bytes that are durable, that the file is stored. */
export type UploadChange = Partial<Pick<Upload, 'length' | 'size' | 'state' | 'tail' | 'outcome'>>

/** A writer: its upload, as long as its epoch is that of the row. */
type Lease = Pick<Upload, 'id' | 'epoch'>

const columns = sql`id, owner, path, metadata, length, size, state, tail, outcome, epoch, writer_until "writerUntil",
  case when expires_at <= ${now} then 1 else is_ended end "isEnded", expires_at "expiresAt"`

/** How long the writer of an upload may be silent before another one takes over. */
const silenceMs = 10_000
const endedMs = 86_400_000
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
        values (${id}, ${owner}, ${path}, ${metadata}, ${length}, 0, 0, ${this.#expiry}, 0, 0)
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
    return this.#sql.get(sql`update ${uploads} set ${this.#heard},
        epoch = epoch + case when writer_until = 0 then 0 else 1 end
      where id = ${id} and is_ended = 0 and expires_at > ${now} and writer_until <= ${now}
      returning ${columns}`)
  }

  /**
   * Records a change durably, and prolongs the lease. False when another writer has it: then nothing more may be recorded,
   * here and below.
   */
  update(lease: Lease, change: UploadChange): Promise<boolean> {
    const assignments = Object.entries(change).map(([column, value]) =>
      sql([`${column} = `, ''], value),
    )
    const sync = assignments.length > 0 ? this.#sync : unsynced
    return this.#assign(lease, join([...assignments, this.#heard]), sync)
  }

  /** Ends an upload: its bytes can be removed. */
  end(lease: Lease): Promise<boolean> {
    return this.#assign(lease, ended, this.#sync)
  }

  async release(lease: Lease): Promise<void> {
    await this.#assign(lease, sql`writer_until = 0`, unsynced)
  }

  /** Ends what has expired, some at a time, and forgets what has ended long ago. */
  async expire(): Promise<Upload[]> {
    await this.#sql.run(
      sql`delete from ${uploads} where is_ended = 1 and expires_at <= ${now} and writer_until <= ${now}`,
    )
    return this.#sql.all<Upload>(sql`update ${uploads} set ${ended} where id in (
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

  async #assign({ id, epoch }: Lease, assignments: Statement, sync: () => Promise<void>) {
    const changed = await this.#sql.run(
      sql`update ${uploads} set ${assignments} where id = ${id} and epoch = ${epoch} and writer_until > 0`,
    )
    await sync()
    return changed > 0
  }

  /** Of a writer: it has its lease, and the upload its time, from now on. */
  get #heard(): Statement {
    return sql`writer_until = ${now} + ${silenceMs}, expires_at = ${this.#expiry}`
  }

  get #expiry(): Statement {
    return sql`${now} + ${this.#lifetimeMs}`
  }
}

const ended = sql`is_ended = 1, tail = null, expires_at = ${now} + ${endedMs}`
