import { hash, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { allEnded, type BlobRef, openBlobFile, type Postgres, sql } from '@domains-and-files/persistence'
import pLimit from 'p-limit'
import type { Bucket, Multipart, UploadedPart } from './bucket.ts'
import { dueIn, isUnclaimed } from './content-commit.ts'
import { ObjectReader, type StoredObject } from './object-reader.ts'

interface FileSlice {
  file: string
  start: number
  length: number
}

export interface ObjectOptions {
  /** With `contentMigrations` applied. */
  postgres: Postgres
  bucket: Bucket
  /** Prefix of all keys, without a trailing slash; may be empty. */
  prefix: string
  /** Seconds for which an object outlives its last reference: longer than the longest download and backup. */
  graceSeconds: number
  /** Milliseconds after which an unfinished upload in several requests is garbage. */
  uploadLifetimeMs?: number
  /** Called with errors in the background; each operation is retried. */
  onError: (error: unknown) => void
}

/**
 * Uploads objects under keys that are never reused. Intent before effect: each key is garbage first, since an object
 * whose key is in no table could never be deleted.
 */
export class ObjectUploads {
  readonly #options: ObjectOptions
  /** Limits the buffers of concurrent uploads. */
  readonly #memory = pLimit(maxBuffers)
  readonly #discards = new Set<Promise<void>>()

  constructor(options: ObjectOptions) {
    this.#options = options
  }

  /**
   * Uploads bytes, or a file, of a blob or its compressed form; a large file in parts. `discard` has the object deleted
   * after the grace, unless it was committed, and does not wait.
   */
  async upload({ digest, size }: BlobRef, from: Buffer | string, sha256 = digest) {
    const key = await this.#addKey(digest)
    const discard = () => this.#discard(key)
    try {
      return { key, size, etag: await this.#send({ key, size, sha256 }, from), discard }
    } catch (error) {
      discard()
      throw error
    }
  }

  /** Begins a multipart upload whose parts may arrive over days. Becomes garbage if not renewed within its lifetime. */
  async begin(): Promise<Multipart> {
    const key = await this.#addKey('uploads')
    return { key, uploadId: await this.#startMultipart(key) }
  }

  /** Postpones the deletion of an object, unless it has begun, and records its multipart upload. */
  async renew({ key, uploadId }: Multipart): Promise<void> {
    await this.#options.postgres.run(
      sql`update static_service.garbage set upload_id = ${uploadId}, due_at = ${this.#due}
         where object_key = ${key} and ${isUnclaimed}`,
    )
  }

  sendPart(where: Multipart & { number: number }, slice: FileSlice): Promise<UploadedPart> {
    return this.#memory(() => this.#sendPart(where, slice, Buffer.allocUnsafeSlow(slice.length)))
  }

  /** Joins the parts, and a tail, to an object of this size. May be repeated. */
  async finish(
    { key, uploadId, parts }: Multipart & { parts: UploadedPart[] },
    { tail, size, number }: { tail: Buffer | null; size: number; number: number },
  ): Promise<StoredObject> {
    const { bucket } = this.#options
    await this.renew({ key, uploadId })
    // An earlier attempt may have finished it.
    const found = await bucket.head(key)
    if (found?.size === size) return { key, size, etag: found.etag }
    const last = tail && (await bucket.putPart({ key, uploadId, number }, tail, hash('sha256', tail)))
    const all = last ? [...parts, last] : parts
    return { key, size, etag: await bucket.finishMultipart({ key, uploadId, size }, all) }
  }

  /** With any entity tag: that of its end may differ from that of reads. */
  open(object: StoredObject): ObjectReader {
    return new ObjectReader(this.#options.bucket, { ...object, etag: undefined })
  }

  /** Has the object deleted after the grace, unless it was committed. */
  async discard(key: string): Promise<void> {
    const { postgres, graceSeconds } = this.#options
    await postgres.run(
      sql`update static_service.garbage set due_at = least(due_at, ${dueIn(graceSeconds)})
         where object_key = ${key}`,
    )
  }

  // Outlives the row of an upload, which expires after its last request: a slow part may still be arriving.
  get #due() {
    const { uploadLifetimeMs = 0, graceSeconds } = this.#options
    return dueIn(uploadLifetimeMs / 1000 + slowPartSeconds + graceSeconds)
  }

  async settle(): Promise<void> {
    await Promise.all(this.#discards)
  }

  async #send({ key, size, sha256 }: { key: string; size: number; sha256: string }, from: Buffer | string) {
    const { bucket } = this.#options
    if (typeof from !== 'string') return bucket.put(key, from, sha256)
    if (size > maxSingleBytes) return this.#sendParts(key, { file: from, size })
    return this.#memory(async () => bucket.put(key, await readFile(from), sha256))
  }

  /** Begins a multipart upload. Aborts it if it cannot be recorded, since no sweep would find it. */
  async #startMultipart(key: string): Promise<string> {
    const { bucket } = this.#options
    const uploadId = await bucket.startMultipart(key)
    try {
      await this.renew({ key, uploadId })
    } catch (error) {
      bucket.abortMultipart({ key, uploadId }).catch(() => undefined)
      throw error
    }
    return uploadId
  }

  async #sendParts(key: string, { file, size }: { file: string; size: number }) {
    const { bucket } = this.#options
    const uploadId = await this.#startMultipart(key)
    const parts: UploadedPart[] = []
    const slices = slicesOf(file, size)
    // Reuses one buffer for its parts: a buffer per part would hold memory until the garbage collector runs.
    const send = async () => {
      const buffer = Buffer.allocUnsafeSlow(partBytesOf(size))
      // An error ends the shared generator, and so all senders.
      for (const { number, ...slice } of slices) {
        parts[number - 1] = await this.#sendPart({ key, uploadId, number }, slice, buffer)
      }
    }
    try {
      await allEnded(Array.from({ length: maxConcurrentParts }, () => this.#memory(send)))
      return await bucket.finishMultipart({ key, uploadId, size }, parts)
    } catch (error) {
      // No part is in flight now. Not awaited: the store may not answer. The sweep retries.
      bucket.abortMultipart({ key, uploadId }).catch(() => undefined)
      throw error
    }
  }

  // Postpones the deletion of the object.
  async #sendPart(where: Multipart & { number: number }, { file, start, length }: FileSlice, buffer: Buffer) {
    await using blob = await openBlobFile(file)
    const part = await blob?.read(start, length, buffer)
    if (part?.length !== length) throw new Error('a temporary file was truncated before it was uploaded')
    const sent = await this.#options.bucket.putPart(where, part, hash('sha256', part))
    await this.renew(where)
    return sent
  }

  /** Records an upload before it begins. The object is deleted unless it is committed in time. */
  async #addKey(folder: string): Promise<string> {
    const { postgres, prefix } = this.#options
    const key = [...(prefix ? [prefix] : []), folder, randomUUID()].join('/')
    await postgres.run(sql`insert into static_service.garbage (object_key, due_at) values (${key}, ${this.#due})`)
    return key
  }

  // If this fails, the object is deleted later.
  #discard(key: string) {
    const discarding = this.discard(key).catch(this.#options.onError)
    this.#discards.add(discarding)
    void discarding.finally(() => this.#discards.delete(discarding))
  }
}

// A part of 8 MiB at the minimum speed of a request body.
const slowPartSeconds = 9000

const mebibyte = 1_048_576
const maxSingleBytes = 16 * mebibyte
const minPartBytes = 8 * mebibyte
// S3 allows 10,000.
const maxParts = 9000
const maxConcurrentParts = 3
const maxBuffers = 6

export const partBytesOf = (size: number) => Math.max(minPartBytes, Math.ceil(size / maxParts / mebibyte) * mebibyte)

function* slicesOf(file: string, size: number) {
  const partBytes = partBytesOf(size)
  for (let start = 0, number = 1; start < size; start += partBytes, number += 1)
    yield { number, file, start, length: Math.min(partBytes, size - start) }
}
