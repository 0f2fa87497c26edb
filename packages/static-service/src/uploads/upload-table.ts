import {
  bytes,
  forUpdateSkipLocked,
  int8,
  join,
  name,
  now,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
  strict,
} from '@domains-and-files/persistence'
import type { SavedBlob } from '../blobs/blob-store.ts'
import { tooManyUploads } from '../errors.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'

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
]

/** A resumable upload as it is stored. */
export interface Upload extends SavedBlob {
  id: string
  owner: string
  path: string
  metadata: string
  conditions: Conditions
  /** In bytes; null: not yet known. */
  length: number | null
  publishing: string | null
  /** The headers of the response to the PATCH that published it; null: unfinished. */
  outcome: Record<string, string> | null
  isEnded: boolean
  expiresAt: number
  epoch: number
}

export type NewUpload = Pick<Upload, 'id' | 'owner' | 'path' | 'metadata' | 'conditions' | 'length'>

/** What a writer records: bytes that are durable, which content the catalog is about to get, that the file is stored. */
export type UploadChange = Partial<
  Pick<Upload, 'length' | 'size' | 'state' | 'tail' | 'publishing' | 'outcome'>
>

interface Row extends Omit<Upload, 'conditions' | 'outcome' | 'isEnded'> {
  conditions: string
  outcome: string | null
  isEnded: number
}

const columns = sql`id, owner, path, metadata, conditions, length, size, state, tail, publishing, outcome, epoch,
  case when expires_at <= ${now} then 1 else is_ended end "isEnded", expires_at "expiresAt"`

/** How long the writer of an upload may be silent before another one takes over. */
const silenceMs = 10_000
const endedMs = 86_400_000
const maxUnfinished = 100

/** The rows of resumable uploads. A writer has a lease in its row, so that any replica takes the next request. */
export class UploadTable {
  readonly #sql: Sql
  readonly #lifetimeMs: number
  readonly #sync: () => Promise<void>

  /** `sync`: what is committed survives a power cut, where it does not by itself. Leases need not. */
  constructor(database: Sql, lifetimeMs: number, sync = async () => {}) {
    this.#sql = database
    this.#lifetimeMs = lifetimeMs
    this.#sync = sync
  }

  /** @throws {HttpError} `too_many_uploads`. */
  async create({ id, owner, path, metadata, conditions, length }: NewUpload): Promise<Upload> {
    const created = await this.#sql.transaction(async (transaction) => {
      await lockOwner(transaction, owner)
      const unfinished = await transaction.get<{
        count: number
      }>(sql`select count(*) count from ${uploads}
        where owner = ${owner} and outcome is null and is_ended = 0 and expires_at > ${now}`)
      if ((unfinished?.count ?? 0) >= maxUnfinished) throw tooManyUploads(maxUnfinished)
      const row = await transaction.get<Row>(sql`
        insert into ${uploads} (id, owner, path, metadata, conditions, length, size, is_ended, expires_at, writer_until, epoch)
        values (${id}, ${owner}, ${path}, ${metadata}, ${JSON.stringify(conditions)}, ${length}, 0, 0,
          ${this.#expiry}, 0, 0) returning ${columns}`)
      if (!row) throw new Error('an insert returned no row')
      return read(row)
    })
    await this.#sync()
    return created
  }

  async find(id: string): Promise<Upload | undefined> {
    const row = await this.#sql.get<Row & { writer: string | null }>(
      sql`select ${columns}, writer from ${uploads} where id = ${id}`,
    )
    if (!row) return undefined
    const { writer, ...found } = row
    // Its writer may have committed the row just now.
    if (writer !== null) await this.#sync()
    return read(found)
  }

  /** Makes `writer` the only one of an upload; undefined while another is heard of, or when it has ended. */
  async acquire(id: string, writer: string): Promise<Upload | undefined> {
    const row =
      await this.#sql.get<Row>(sql`update ${uploads} set writer = ${writer}, ${this.#heard},
        epoch = epoch + case when writer is null then 0 else 1 end
      where id = ${id} and is_ended = 0 and expires_at > ${now} and (writer is null or writer_until <= ${now})
      returning ${columns}`)
    return row && read(row)
  }

  /**
   * Records a change durably, and prolongs the lease. False when another writer has it: then nothing more may be recorded,
   * here and below.
   */
  async update(id: string, writer: string, { outcome, ...change }: UploadChange): Promise<boolean> {
    const values = {
      ...change,
      ...(outcome && { outcome: JSON.stringify(outcome), tail: null }),
    }
    const columns = Object.entries(values).map(([column, value]) =>
      sql([`${column} = `, ''], value),
    )
    const isHeld = await this.#assign(id, writer, join([...columns, this.#heard]))
    if (columns.length > 0) await this.#sync()
    return isHeld
  }

  /** Ends an upload: its bytes can be removed. */
  async end(id: string, writer: string): Promise<boolean> {
    const isHeld = await this.#assign(id, writer, ended)
    await this.#sync()
    return isHeld
  }

  async release(id: string, writer: string): Promise<void> {
    await this.#assign(id, writer, sql`writer = null, writer_until = 0`)
  }

  /** Ends what has expired, some at a time, and forgets what has ended long ago. */
  async expire(): Promise<Upload[]> {
    await this.#sql.run(
      sql`delete from ${uploads} where is_ended = 1 and expires_at <= ${now} and writer_until <= ${now}`,
    )
    const rows = await this.#sql.all<Row>(sql`update ${uploads} set ${ended} where id in (
      select id from ${uploads} where is_ended = 0 and expires_at <= ${now} and writer_until <= ${now}
      limit 100 ${forUpdateSkipLocked}) returning ${columns}`)
    return rows.map(read)
  }

  /** For the only process at its start: no writer is left of the one before. Returns the ids that have saved bytes. */
  async restart(): Promise<Set<string>> {
    await this.#sql.run(
      sql`update ${uploads} set writer = null, writer_until = 0 where writer is not null`,
    )
    const rows = await this.#sql.all<{ id: string }>(
      sql`select id from ${uploads} where outcome is null and is_ended = 0`,
    )
    return new Set(rows.map(({ id }) => id))
  }

  async #assign(id: string, writer: string, assignments: Statement): Promise<boolean> {
    const changed = await this.#sql.run(
      sql`update ${uploads} set ${assignments} where id = ${id} and writer = ${writer}`,
    )
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

// Uploads that one user creates at once are counted one after another.
async function lockOwner(transaction: SqlTransaction, owner: string) {
  if (transaction.dialect === 'postgres')
    await transaction.get(
      sql`select pg_advisory_xact_lock(hashtext('uploads'), hashtext(${owner}))`,
    )
}

const read = ({ conditions, outcome, isEnded, ...row }: Row): Upload => ({
  ...row,
  conditions: JSON.parse(conditions),
  outcome: outcome === null ? null : JSON.parse(outcome),
  isEnded: isEnded !== 0,
})
