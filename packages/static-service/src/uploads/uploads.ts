import { randomUUID } from 'node:crypto'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import type { Sql, SqliteSql } from '@domains-and-files/persistence'
import { DatabaseUnavailableError, join, now, Probe, sql } from '@domains-and-files/persistence'
import { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob, SavedBlob } from '../blobs/blob-store.ts'
import { ContentHash, type StagedBlob } from '../blobs/staged-blob.ts'
import * as errors from '../errors.ts'
import { uploads } from './migrations.ts'

/** A resumable upload: its row, without the tail of its bytes. Times are milliseconds since 1970. */
export interface Upload extends Omit<SavedBlob, 'tail'> {
  id: string
  owner: string
  path: string
  metadata: string
  length: number | null
  outcome: string | null
  /** The catalog was given the file, and has not refused it since: it may be stored. */
  tried: 0 | 1
  expiresAt: number
  /** Writers that fell silent, and losses of its bytes. */
  epoch: number
}

type UploadChange = Partial<SavedBlob & Pick<Upload, 'length' | 'outcome' | 'tried' | 'epoch'>>

type End = 'request' | 'upload'
type Hashes = LRUCache<string, ContentHash>
type Work = (writer: UploadWriter) => Promise<void>

export interface UploadDependencies {
  database: Sql
  /** Makes commits survive a power cut, where they do not by themselves. Leases need not. */
  log?: Pick<SqliteSql, 'flush' | 'isIntact'>
  /** After the last request. */
  lifetimeMs: number
  store: Pick<BlobStore, 'resume' | 'discard'>
}

const columns = sql`id, owner, path, metadata, length, size, state, outcome, tried, epoch, expires_at "expiresAt"`

/**
 * Uploads that arrive in several requests (tus 1.0). The writer of an upload has a lease in its row, so that any replica takes
 * the next request.
 */
export class Uploads {
  readonly #dependencies: UploadDependencies
  readonly #written = new Set<string>()
  /** Of what this process has received and recorded, by `keyOf`: without it a content is read again at its end. */
  readonly #hashes: Hashes = new LRUCache({ max: 1000 })
  readonly #sweeping: Probe

  /** `onLost`: expired uploads could not be removed. It is tried again. */
  constructor(dependencies: UploadDependencies, onLost: (error: unknown) => void) {
    this.#dependencies = dependencies
    this.#sweeping = new Probe({ check: () => this.sweep(), intervalMs: 10_000, onLost })
  }

  /** False: no request gets at the rows until a restart. */
  get isIntact(): boolean {
    return this.#dependencies.log?.isIntact ?? true
  }

  /** @throws {HttpError} `too_many_uploads`. */
  async create(upload: Pick<Upload, 'owner' | 'path' | 'metadata' | 'length'>): Promise<Upload> {
    const { owner, path, metadata, length } = upload
    const { database, lifetimeMs, log } = this.#dependencies
    const created = await database.transaction(async (transaction) => {
      // Uploads that one user creates at once are counted one after another.
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

  /** @throws {HttpError} `upload_not_found`, also outside the caller's own or its folders, or `upload_ended`. */
  async find(id: string, caller: Caller): Promise<Upload> {
    const { database, log } = this.#dependencies
    const upload = await database.get<Upload & { isEnded: unknown }>(sql`
      select ${columns}, ${hasExpired} "isEnded" from ${uploads} where id = ${id}`)
    if (!this.isIntact) throw new DatabaseUnavailableError(new Error('restart the service'))
    if (upload?.owner !== caller.username || !allowsPath(caller, upload.path))
      throw errors.uploadNotFound()
    if (upload.isEnded) throw errors.uploadEnded()
    // Its writer may have committed the row just now.
    if (this.#written.has(id)) await log?.flush()
    return upload
  }

  /**
   * Runs `work` as the only writer of an upload, which begins again where its bytes are lost, and records what arrived, also
   * where `work` fails. Returns the upload as it is then.
   * @throws {HttpError} `upload_locked` while another one is heard of, and as `find`.
   */
  async write(id: string, caller: Caller, work: Work): Promise<Upload> {
    await this.find(id, caller)
    // Also where a lease ended because this process stood still: both would write to the same bytes.
    if (this.#written.has(id)) throw errors.uploadLocked()
    this.#written.add(id)
    try {
      const { database, lifetimeMs } = this.#dependencies
      const upload = await database.get<Upload & SavedBlob>(sql`update ${uploads}
        set ${heard(lifetimeMs)}, epoch = epoch + case when writer_until = 0 then 0 else 1 end
        where id = ${id} and expires_at > ${now} and writer_until <= ${now} returning ${columns}, tail`)
      if (!upload) throw errors.uploadLocked()
      // Ended before the response: the client may send its next request at once.
      await using writer = new UploadWriter(upload, this.#dependencies, this.#hashes)
      const saved = work(writer).then(
        () => writer.save({}, 'request'),
        (error) => writer.save().then(() => Promise.reject(error)),
      )
      await saved.catch(async (error) => {
        if (!(error instanceof errors.BytesLost)) throw error
        const epoch = upload.epoch + 1 // Other replicas may know the lost bytes.
        await writer.record({ size: 0, state: null, tail: null, tried: 0, epoch })
        throw errors.offsetConflict(0) // A client asks after a conflict, and continues there.
      })
      return writer.upload
    } finally {
      this.#written.delete(id)
    }
  }

  /** Ends what has expired, removes its bytes, and forgets what ended a day ago. */
  async sweep(): Promise<void> {
    const { database, store } = this.#dependencies
    await database.run(sql`delete from ${uploads}
      where is_ended = 1 and expires_at <= ${now} - 86400000`)
    const expired = await database.all<Upload>(sql`update ${uploads} set is_ended = 1, tail = null
      where is_ended = 0 and ${hasExpired} returning ${columns}`)
    for (const upload of expired) await store.discard(upload.id, upload)
  }

  /** For the only process at its start: no writer is left of the one before. Returns the ids that have saved bytes. */
  async restart(): Promise<Set<string>> {
    const rows = await this.#dependencies.database.all<{ id: string }>(sql`update ${uploads}
      set writer_until = 0 where is_ended = 0 and outcome is null returning id`)
    return new Set(rows.map(({ id }) => id))
  }

  close(): Promise<void> {
    return this.#sweeping.close()
  }
}

/** The only writer of an upload. One that could not renew its lease can lose it to another one; then it records nothing. */
export class UploadWriter implements AsyncDisposable {
  readonly #dependencies: UploadDependencies
  readonly #hashes: Hashes
  readonly #blob: ResumableBlob
  readonly #timer = setInterval(() => void this.record({}).catch(() => undefined), 2000).unref()
  /** As it is recorded. */
  upload: Upload
  /** The bytes that arrive do not count yet. */
  isTentative = false
  #hash: ContentHash | undefined
  #isReleased = false

  constructor(upload: Upload & SavedBlob, dependencies: UploadDependencies, hashes: Hashes) {
    const { id, size, epoch } = upload
    this.upload = upload
    this.#dependencies = dependencies
    this.#hashes = hashes
    const onSaved = async (saved: UploadChange) => {
      if (!this.isTentative) await this.record(saved)
    }
    this.#blob = dependencies.store.resume(id, upload, { epoch, onSaved })
    this.#hash = size === 0 ? new ContentHash() : hashes.get(keyOf(upload))
    hashes.delete(keyOf(upload)) // Until what it takes is recorded.
  }

  /**
   * Records a change durably. The lease, and the time of the upload, begin again or end.
   * @throws {HttpError} `upload_locked` where another writer has the upload.
   */
  async record(change: UploadChange, ends?: End): Promise<void> {
    const { database, log, lifetimeMs } = this.#dependencies
    const { id, epoch } = this.upload
    const changes = Object.entries(change).map(([column, value]) =>
      sql([`${column} = `, ''], value),
    )
    const recorded = await database.run(sql`update ${uploads}
      set ${join([...changes, heard(lifetimeMs, ends)])}
      where id = ${id} and epoch = ${epoch} and writer_until > 0`)
    this.#isReleased ||= ends !== undefined
    if (changes.length > 0) await log?.flush()
    if (recorded === 0) throw errors.uploadLocked()
    this.upload = { ...this.upload, ...change }
  }

  write(chunk: Buffer): Promise<void> {
    this.#hash?.update(chunk)
    return this.#blob.write(chunk)
  }

  /** Records a change, and all bytes that count, which are durable then. */
  async save(change: UploadChange = {}, ends?: End): Promise<void> {
    if (this.#isReleased) return
    // Once the file is stored the upload has no bytes any more, and its last request may be repeated.
    const saved = this.isTentative || this.upload.outcome ? {} : await this.#blob.save()
    await this.record({ ...saved, ...change }, ends)
  }

  /** The whole content, for the catalog. May be repeated. */
  async stage(): Promise<StagedBlob> {
    const staged = await this.#blob.stage(this.#hash)
    this.#hash = staged.hash
    return staged
  }

  /** Ends the upload and removes its bytes: as a file, which is told until it expires, or without an outcome. */
  async end(outcome?: object): Promise<void> {
    const change = { tail: null, ...(outcome && { outcome: JSON.stringify(outcome) }) }
    await this.record(change, outcome ? 'request' : 'upload')
    this.#hash = undefined
    // What this leaves is found by a sweep, or by the next start.
    await this.#dependencies.store.discard(this.upload.id, this.upload).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#blob[Symbol.asyncDispose]()
    if (this.#hash?.size === this.upload.size) this.#hashes.set(keyOf(this.upload), this.#hash)
    // A lease that cannot be released expires.
    if (!this.#isReleased) await this.record({}, 'request').catch(() => undefined)
  }
}

/** Not while it has a writer, which may be heard of less often than an upload may live. */
const hasExpired = sql`expires_at <= ${now} and writer_until <= ${now}`

/** A writer has its lease for ten seconds, and the upload its time, from now on, unless either ends. */
const heard = (lifetimeMs: number, ends?: End) =>
  sql`writer_until = ${ends ? sql`0` : sql`${now} + 10000`},
    expires_at = ${now} + ${ends === 'upload' ? 0 : lifetimeMs}`

const keyOf = ({ id, epoch, size }: Upload) => `${id} ${epoch} ${size}`

const maxUnfinished = 100
