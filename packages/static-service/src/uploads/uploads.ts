import { randomUUID } from 'node:crypto'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import {
  BackgroundTask,
  bytes,
  DatabaseFullError,
  DatabaseUnavailableError,
  int8,
  join,
  name,
  now,
  type Sql,
  type SqliteSql,
  type Statement,
  sql,
  strict,
} from '@domains-and-files/persistence'
import { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob, SavedBlob } from '../blobs/blob-store.ts'
import type { StagedBlob } from '../blobs/staging-file.ts'
import { ContentHash } from '../blobs/stored-blob.ts'
import * as errors from '../errors.ts'

export const uploads = name('uploads')

/**
 * Resumable uploads, in PostgreSQL or in `uploads.sqlite` of DATA_DIR. Times are milliseconds since 1970. Unreleased
 * versions created the same table as another part of the migrations.
 */
export const uploadMigrations: Record<'resumable_uploads', Statement[]> = {
  resumable_uploads: [
    sql`
    create table if not exists ${uploads} (
      id text primary key,
      owner text not null, -- see ownerOf; of earlier versions a username
      path text not null,
      metadata text not null, -- as it was sent
      length ${int8}, -- null: not yet known
      size ${int8} not null, -- bytes that are durable
      state text, -- of the store
      tail ${bytes},
      outcome text, -- JSON: the headers that told its end; null: unfinished
      is_ended integer not null, -- its bytes are removed
      expires_at ${int8} not null, -- or when it was deleted
      writer_until ${int8} not null,
      epoch integer not null, -- losses of a writer or of the bytes
      tried integer not null default 0 -- 1: the catalog may have stored the file
    ) ${strict};
    create index if not exists uploads_by_owner on ${uploads} (owner) where outcome is null and is_ended = 0;
    create index if not exists uploads_by_expiry on ${uploads} (expires_at)`,
  ],
}

/** A resumable upload: its row, without the tail of its bytes. Times are milliseconds since 1970. */
export interface Upload extends Omit<SavedBlob, 'tail'> {
  id: string
  owner: string
  path: string
  metadata: string
  length: number | null
  outcome: string | null
  /** 1: an attempt that was not rejected passed the file to the catalog, so it may be stored. */
  tried: 0 | 1
  expiresAt: number
}

type UploadChange = Partial<SavedBlob & Pick<Upload, 'length' | 'outcome' | 'tried'>>
type End = 'request' | 'upload'
type Hashes = LRUCache<string, ContentHash>

interface UploadDependencies {
  database: Sql
  /** Flushes commits that must survive a power cut, where commits are not durable by themselves. Leases need not be. */
  log?: Pick<SqliteSql, 'flush' | 'isIntact'>
  /** Time from the last request to expiry. */
  lifetimeMs: number
  store: Pick<BlobStore, 'resume' | 'discard'>
}

const columns = sql`id, owner, path, metadata, length, size, state, outcome, tried, epoch, expires_at "expiresAt"`

/** Uploads in several requests (tus 1.0). A writer leases the row, so that any replica takes the next request. */
export class Uploads {
  readonly #dependencies: UploadDependencies
  readonly #written = new Set<string>()
  /** Hashes of recorded bytes that this process received, by `keyOf`; without one, the blob is read again at its end. */
  readonly #hashes: Hashes = new LRUCache({ max: 1000 })
  readonly #sweeping: BackgroundTask

  /** `onError`: called when removing expired uploads failed; the sweep retries. */
  constructor(dependencies: UploadDependencies, onError: (error: unknown) => void) {
    this.#dependencies = dependencies
    this.#sweeping = new BackgroundTask({ run: () => this.sweep(), intervalMs: 10_000, onError })
  }

  /** False: the database files are gone; requests fail until a restart. */
  get isIntact(): boolean {
    return this.#dependencies.log?.isIntact ?? true
  }

  /** @throws {HttpError} `too_many_uploads`. */
  async create(upload: Pick<Upload, 'owner' | 'path' | 'metadata' | 'length'>): Promise<Upload> {
    const { owner, path, metadata, length } = upload
    const { database, lifetimeMs, log } = this.#dependencies
    const created = await database.transaction(async (transaction) => {
      // Serializes creations by one user, so that their count is exact.
      const lock = sql`select pg_advisory_xact_lock(hashtext('uploads'), hashtext(${owner}))`
      if (transaction.dialect === 'postgres') await transaction.get(lock)
      return transaction.get<Upload>(sql`
        insert into ${uploads} (id, owner, path, metadata, length, size, is_ended, expires_at, writer_until, epoch)
        select ${randomUUID()}, ${owner}, ${path}, ${metadata}, ${length}, 0, 0, ${now} + ${lifetimeMs}, 0, 0
        where (select count(*) from ${uploads} where owner = ${owner} and outcome is null and is_ended = 0
          and expires_at > ${now}) < ${maxUnfinished} returning ${columns}`)
    })
    if (!created) throw errors.tooManyUploads(maxUnfinished)
    await log?.flush()
    return created
  }

  /** @throws {HttpError} `upload_not_found` (also if not the caller's, or outside its folders) or `upload_ended`. */
  async find(id: string, caller: Caller): Promise<Upload> {
    const { database, log } = this.#dependencies
    const upload = await database.get<Upload & { isEnded: unknown }>(sql`
      select ${columns}, ${hasExpired} "isEnded" from ${uploads} where id = ${id}`)
    if (!this.isIntact) throw new DatabaseUnavailableError(new Error('restart the service'))
    if (upload?.owner !== ownerOf(caller) || !allowsPath(caller, upload.path)) throw errors.uploadNotFound()
    if (upload.isEnded) throw errors.uploadEnded()
    // Its writer may have just committed the row without a flush.
    if (this.#written.has(id)) await log?.flush()
    return upload
  }

  /**
   * Runs `work` as the only writer of an upload. Records the received bytes where `work` fails, and returns the
   * upload. If saved bytes are lost, resets the upload to offset 0 and rejects with `offset_conflict`.
   * @throws {HttpError} `upload_locked` while another writer holds the lease, and as `find`.
   */
  async write(id: string, caller: Caller, work: (writer: UploadWriter) => Promise<void>): Promise<Upload> {
    await this.find(id, caller)
    // Even if its lease expired because this process stalled: both writers would write to the same bytes.
    if (this.#written.has(id)) throw errors.uploadLocked()
    this.#written.add(id)
    try {
      const { database, lifetimeMs } = this.#dependencies
      const upload = await database.get<Upload & SavedBlob>(sql`update ${uploads}
        set ${renewal(lifetimeMs)}, epoch = epoch + case when writer_until = 0 then 0 else 1 end
        where id = ${id} and expires_at > ${now} and writer_until <= ${now} returning ${columns}, tail`)
      if (!upload) throw errors.uploadLocked()
      // Releases the lease before the response: the client may send its next request at once.
      await using writer = new UploadWriter(upload, this.#dependencies, this.#hashes)
      const worked = work(writer).catch((error) => writer.save().then(() => Promise.reject(error)))
      await worked.catch(async (error) => {
        if (!(error instanceof errors.BytesLost)) throw error
        const epoch = upload.epoch + 1 // Other replicas may have hashes of the lost bytes.
        await writer.record({ size: 0, state: null, tail: null, tried: 0, epoch })
        throw errors.offsetConflict(0) // After a conflict, a client asks for the offset and continues there.
      })
      return writer.upload
    } finally {
      this.#written.delete(id)
    }
  }

  /** Ends an upload, and removes its bytes. @throws as `write`. */
  end(id: string, caller: Caller): Promise<Upload> {
    return this.#makeRoom(sql`id = ${id}`, () => this.write(id, caller, (writer) => writer.end()))
  }

  /** Ends expired uploads, removes their bytes, and deletes the rows of uploads that ended a day ago. */
  async sweep(): Promise<void> {
    const { database, store } = this.#dependencies
    const isExpired = sql`is_ended = 0 and ${hasExpired}`
    // Ends the lease of a writer that slept meanwhile.
    const end = sql`update ${uploads}
      set is_ended = 1, tail = null, writer_until = 0 where ${isExpired} returning ${columns}`
    const expired = await this.#makeRoom(isExpired, () => database.all<Upload>(end))
    const discard = (upload: Upload) =>
      store.discard(upload.id, upload).catch(async (error) => {
        await database.run(sql`update ${uploads} set is_ended = 0 where id = ${upload.id}`)
        throw error
      })
    await Promise.all(expired.map(discard))
    await database.run(sql`delete from ${uploads}
      where is_ended = 1 and expires_at <= ${now} - 86400000`)
  }

  /** Where the disk is full, the bytes of the uploads that end make the room to record that. */
  async #makeRoom<T>(areEnding: Statement, record: () => Promise<T>): Promise<T> {
    return record().catch(async (error) => {
      if (!(error instanceof DatabaseFullError)) throw error
      const { database, store } = this.#dependencies
      const ending = await database.all<Upload>(sql`select ${columns} from ${uploads} where ${areEnding}`)
      for (const upload of ending) await store.discard(upload.id, upload)
      return record()
    })
  }

  /** For a single process at its start: ends the leases of the previous one. Returns the ids of unfinished uploads. */
  async restart(): Promise<Set<string>> {
    const { database } = this.#dependencies
    const ended = database.run(sql`update ${uploads} set writer_until = 0 where is_ended = 0 and writer_until > 0`)
    await ended.catch((error) => error instanceof DatabaseFullError || Promise.reject(error)) // Then they expire.
    const left = sql`select id from ${uploads} where is_ended = 0 and outcome is null`
    return new Set((await database.all<Pick<Upload, 'id'>>(left)).map(({ id }) => id))
  }

  close(): Promise<void> {
    return this.#sweeping.close()
  }
}

/** The only writer of an upload. Without renewal it may lose its lease to another writer; then `record` rejects. */
export class UploadWriter implements AsyncDisposable {
  readonly #dependencies: UploadDependencies
  readonly #hashes: Hashes
  readonly #blob: ResumableBlob
  readonly #timer = setInterval(() => void this.record({}).catch(() => undefined), 2000).unref()
  /** With the changes that were passed to `record`. */
  upload: Upload
  /** Arriving bytes do not count yet. */
  isTentative = false
  #hash: ContentHash | undefined

  constructor(upload: Upload & SavedBlob, dependencies: UploadDependencies, hashes: Hashes) {
    this.upload = upload
    this.#dependencies = dependencies
    this.#hashes = hashes
    // Also of a tentative request: another writer may have the upload.
    this.#blob = dependencies.store.resume(upload.id, upload, (saved) => this.record(this.isTentative ? {} : saved))
    this.#hash = upload.size === 0 ? new ContentHash() : hashes.get(keyOf(upload))
    hashes.delete(keyOf(upload)) // Removed until the bytes that it takes next are recorded.
  }

  /**
   * Records a change durably. Renews the lease and the expiry of the upload, or ends the lease, or both.
   * @throws {HttpError} `upload_locked` where another writer has the upload.
   */
  async record(change: UploadChange, ends?: End): Promise<void> {
    const { database, log, lifetimeMs } = this.#dependencies
    const { id, epoch } = this.upload
    this.upload = { ...this.upload, ...change }
    const changes = Object.entries(change).map(([column, value]) => sql([`${column} = `, ''], value))
    const recorded = await database.run(sql`update ${uploads}
      set ${join([...changes, renewal(lifetimeMs, ends)])}
      where id = ${id} and epoch = ${epoch} and writer_until > 0`)
    if (changes.length > 0) await log?.flush()
    if (recorded === 0) throw errors.uploadLocked()
  }

  write(chunk: Buffer): Promise<void> {
    this.#hash?.update(chunk)
    return this.#blob.write(chunk)
  }

  /** Makes all bytes that count durable, and records them with a change. */
  async save(change: UploadChange = {}): Promise<void> {
    // After the file is stored, the upload has no bytes; its last request may be repeated.
    if (this.upload.outcome) return
    const saved = this.isTentative ? {} : await this.#blob.save()
    await this.record({ ...saved, ...change })
  }

  /** Stages the complete blob for the catalog. May be repeated. */
  async stage(): Promise<StagedBlob> {
    const staged = await this.#blob.stage(this.#hash)
    this.#hash = staged.hash
    return staged
  }

  /** Ends the upload and removes its bytes. With an outcome (a stored file), it can be queried until it expires. */
  async end(outcome?: object): Promise<void> {
    const change = { tail: null, ...(outcome && { outcome: JSON.stringify(outcome) }) }
    await this.record(change, outcome ? undefined : 'upload')
    // A sweep, or the next start, removes remaining bytes.
    await this.#dependencies.store.discard(this.upload.id, this.upload).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#blob[Symbol.asyncDispose]()
    if (this.#hash?.size === this.upload.size) this.#hashes.set(keyOf(this.upload), this.#hash)
    // A lease that cannot be released expires, and that of an ended upload is released.
    await this.record({}, 'request').catch(() => undefined)
  }
}

/** The owner of uploads: the id of a user, also for its API tokens, or of a trust. A later user of that name has another id. */
export const ownerOf = ({ id, token }: Caller): string => token?.owner ?? id

/** Never while it has a writer: the lifetime may be shorter than a lease. */
const hasExpired = sql`expires_at <= ${now} and writer_until <= ${now}`

/** Renews the lease (10 s) and the lifetime of the upload from now on, or ends them. */
const renewal = (lifetimeMs: number, ends?: End) =>
  sql`writer_until = ${ends ? sql`0` : sql`${now} + 10000`},
    expires_at = ${now} + ${ends === 'upload' ? 0 : lifetimeMs}`

const keyOf = ({ id, epoch, size }: Upload) => `${id} ${epoch} ${size}`

const maxUnfinished = 100
