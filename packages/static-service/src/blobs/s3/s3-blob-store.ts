import { hash, randomUUID } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  BackgroundTask,
  type BlobRef,
  type OpenBlob,
  openBytes,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import {
  type CompressedCoding,
  type ContentCoding,
  compressedCodings,
  contentCodings,
} from '../../rfc9110/content-codings.ts'
import type { BlobStore, OnSaved, ResumableBlob, SavedBlob } from '../blob-store.ts'
import { isWritable } from '../disk/disk-space.ts'
import { StagedBlob, StagingFile, StagingMemory } from '../staging-file.ts'
import { type ContentHash, folderMode, maxSmallBytes, type VerifiedContents, Verifier } from '../stored-blob.ts'
import { ContentCommit, deleteContents, findRow, isForm, isUnclaimed } from './content-commit.ts'
import { GarbageSweep } from './garbage-sweep.ts'
import { ObjectReader, type StoredObject } from './object-reader.ts'
import { type ObjectOptions, ObjectUploads, partBytesOf } from './object-uploads.ts'
import { ResumableObject, type SavedParts } from './resumable-object.ts'

interface S3BlobStoreOptions extends ObjectOptions {
  dataDir: string
  /** Maximum bytes of an upload in several requests. */
  maxUploadBytes?: number
  /** For maintenance beside running replicas: no garbage sweeps, no probes of the bucket. */
  isCommand?: boolean
}

/**
 * Blobs in a bucket of an S3 store; up to 32 KiB in PostgreSQL. Object keys are unique and never reused, so any number
 * of replicas share a bucket. A blob becomes durable with the catalog's commit: see `commits`.
 */
export class S3BlobStore implements BlobStore {
  readonly commits: ContentCommit
  readonly sweep: GarbageSweep
  readonly holdsSmall = true
  /** Always verified: the store compared each upload with its digest, and keys are never reused. */
  readonly verified: VerifiedContents = { isVerified: () => true, recordVerified: () => undefined }
  readonly #options: S3BlobStoreOptions
  readonly #uploads: ObjectUploads
  #probe: BackgroundTask | undefined
  /** Of objects with another entity tag than that which was stored; each is hashed once, since the new tag is kept. */
  readonly #verifier = new Verifier({ isVerified: () => false, recordVerified: () => undefined })
  readonly memory = new StagingMemory()

  /** Creates the folder for temporary files, and empties it. */
  static async open(options: S3BlobStoreOptions): Promise<S3BlobStore> {
    const tmp = join(options.dataDir, 'tmp')
    await mkdir(tmp, { recursive: true, mode: folderMode })
    for (const name of await readdir(tmp)) await rm(join(tmp, name), { recursive: true })
    return new S3BlobStore(options)
  }

  private constructor(options: S3BlobStoreOptions) {
    const { graceSeconds, isCommand, onError } = options
    this.#options = options
    this.#uploads = new ObjectUploads(options)
    this.commits = new ContentCommit(graceSeconds)
    const sweepMs = Math.min(Math.max(graceSeconds * 500, 1000), 60_000)
    this.sweep = new GarbageSweep(options, isCommand ? undefined : sweepMs)
    if (isCommand) return
    this.#probe = new BackgroundTask({ run: () => this.#reachBucket(), intervalMs: probeIntervalMs, onError })
  }

  resume(_id: string, saved: SavedBlob, onSaved: OnSaved): ResumableBlob {
    return new ResumableObject(saved, {
      onSaved,
      uploads: this.#uploads,
      newPart: () => new StagingFile({ file: this.#newTmpFile(), memory: this.memory }),
      partBytes: partBytesOf(this.#options.maxUploadBytes ?? 0),
      stage: (...content) => this.draft(...content),
    })
  }

  async discard(_id: string, { state }: Pick<SavedBlob, 'state'>): Promise<void> {
    const parts: SavedParts | null = JSON.parse(state ?? 'null')
    if (parts) await this.#uploads.discard(parts.key)
  }

  draft(file = this.#newTmpFile(), arrived?: ContentHash, object?: StoredObject): StagedBlob {
    const store = async (blob: BlobRef, from: Uint8Array | string) => {
      if (typeof from !== 'string') return this.commits.add({ ...blob, bytes: from })
      return object ? this.commits.add({ ...blob, ...object }) : this.#storeFile(from, blob)
    }
    return new StagedBlob({ file, arrived, isFlushed: false, memory: this.memory, store })
  }

  open(digest: string, coding?: ContentCoding): Promise<OpenBlob | undefined> {
    return this.openAt(this.#options.postgres, digest, coding)
  }

  /** As `open`, but as of a snapshot of the database: for a backup. */
  async openAt(snapshot: Pick<SqlTransaction, 'get'>, digest: string, coding: ContentCoding = 'identity') {
    const row = await findRow(snapshot, digest, coding)
    if (!row) return undefined
    if ('bytes' in row) return openBytes(row.bytes)
    return new ObjectReader(this.#options.bucket, row, (found) => this.#confirm(found, digest, coding))
  }

  // Encryption, gateways and copies of a bucket change entity tags: then the bytes decide.
  async #confirm(found: StoredObject, digest: string, coding: ContentCoding): Promise<boolean> {
    const { bucket, postgres, isCommand } = this.#options
    const { key, etag = null } = found
    const blob = { digest, size: (await this.formSize(digest, 'identity')) ?? 0 }
    await using reader = new ObjectReader(bucket, found)
    if ((await bucket.head(key))?.size !== found.size || !(await this.#verifier.verify(reader, blob, coding)))
      return false
    if (!isCommand) await postgres.run(sql`update static_service.contents set etag = ${etag} where object_key = ${key}`)
    return true
  }

  async forms(digest: string): Promise<CompressedCoding[]> {
    const sizes = await this.#sizes(digest)
    return compressedCodings.filter((coding) => sizes.has(coding))
  }

  async formSize(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return (await this.#sizes(digest)).get(coding)
  }

  async putForm(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void> {
    const { length: size } = bytes
    if (size <= maxSmallBytes) return this.#addForm(digest, coding, { size, bytes })
    const object = await this.#uploads.upload({ digest, size }, bytes, hash('sha256', bytes))
    // Discarding does nothing to an object that was committed.
    await this.#addForm(digest, coding, object).finally(object.discard)
  }

  // Only if the blob is stored, and does not have that form. Otherwise the object stays garbage.
  async #addForm(digest: string, coding: ContentCoding, form: { size: number; bytes: Buffer } | StoredObject) {
    const { size, bytes, key, etag } = { bytes: null, key: null, etag: null, ...form }
    await this.#options.postgres.run(sql`with content as (
        select from static_service.contents where ${isForm(digest, 'identity')} for key share
      ), uploaded as (
        delete from static_service.garbage where object_key = ${key} and ${isUnclaimed} and exists (select from content)
          and not exists (select from static_service.contents where ${isForm(digest, coding)})
        returning object_key
      )
      insert into static_service.contents (digest, coding, size, bytes, object_key, etag)
        select ${digest}::text, ${contentCodings.indexOf(coding)}::smallint, ${size}::bigint, ${bytes}::bytea, ${key}::text, ${etag}::text
        from content where ${key}::text is null or exists (select from uploaded)
      on conflict do nothing`)
  }

  async dropForm(digest: string, coding: CompressedCoding): Promise<void> {
    await this.#options.postgres.run(deleteContents(isForm(digest, coding), this.#options.graceSeconds))
  }

  // PostgreSQL's own pages and log are left to its vacuum and checkpoints.
  erase(digests: string[]): Promise<void> {
    return this.sweep.runFor(digests)
  }

  check() {
    const statusIf = (isOk: boolean | undefined) => ({ status: isOk ? ('ok' as const) : ('unavailable' as const) })
    return { disk: statusIf(isWritable(this.#options.dataDir)), s3: statusIf(this.#probe?.isAvailable) }
  }

  async close(): Promise<void> {
    await this.#probe?.close()
    await this.sweep.close()
    await this.#uploads.settle()
    this.#options.bucket.close()
  }

  async #sizes(digest: string): Promise<Map<ContentCoding, number>> {
    const rows = await this.#options.postgres.all<{ coding: number; size: number }>(
      sql`select coding, size from static_service.contents where digest = ${digest} order by coding`,
    )
    return new Map(rows.map(({ coding, size }) => [contentCodings[coding] ?? 'identity', size]))
  }

  // Skips the upload if the blob is already stored.
  async #storeFile(file: string, blob: BlobRef): Promise<() => void> {
    const stored = await findRow(this.#options.postgres, blob.digest, 'identity')
    if (stored) {
      await rm(file)
      return this.commits.add({ ...blob, ...stored })
    }
    const { key, etag, discard } = await this.#uploads.upload(blob, file)
    const release = this.commits.add({ ...blob, key, etag })
    await rm(file)
    return () => {
      release()
      discard()
    }
  }

  #newTmpFile() {
    return join(this.#options.dataDir, 'tmp', randomUUID())
  }

  // Writes the probe object once: for a missing key, HEAD cannot tell missing rights from a missing object.
  #isProbeWritten = false

  async #reachBucket() {
    const { bucket, prefix } = this.#options
    const key = prefix ? `${prefix}/probe` : 'probe'
    if (this.#isProbeWritten && (await bucket.head(key, { requestTimeout: probeTimeoutMs }))) return
    await bucket.put(key, new Uint8Array(), emptyDigest)
    this.#isProbeWritten = true
  }
}

const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const probeIntervalMs = 2000
// Shorter than the limit of other calls: /health reports an unresponsive store within 7 s.
const probeTimeoutMs = 5000
