import { createHash, hash, randomUUID } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { type Postgres, sql } from '@domains-and-files/persistence'
import pLimit from 'p-limit'
import type { StoredBlob } from '../staged-blob.ts'
import type { Bucket, UploadedPart } from './bucket.ts'
import { discardIntents } from './content-table.ts'
import { ObjectReader, type StoredObject } from './object-reader.ts'

interface Multipart {
  key: string
  uploadId: string
}

interface FileSlice {
  file: string
  start: number
  length: number
}

interface Dependencies {
  postgres: Postgres
  bucket: Bucket
  /** Seconds between the end of an object's use and its deletion. */
  graceSeconds: number
  /** Of all keys, without a slash at its end; may be empty. */
  prefix: string
  /** Milliseconds after which a multipart upload is garbage that its client has left. */
  lifetimeMs: number
  /** Errors in the background. */
  onError: (error: unknown) => void
}

/** An object without a commit yet. */
export interface UploadedObject extends StoredObject {
  /** Turns it into garbage, in the background, unless it was committed. */
  discard: () => void
}

/**
 * Uploads of objects under keys that are never used again. Intent before effect: an object whose key is in no table could
 * never be deleted.
 */
export class ObjectUploads {
  readonly #dependencies: Dependencies
  /** Of the bytes that uploads hold while they are sent. */
  readonly #memory = pLimit(maxBuffers)
  readonly #discards = new Set<Promise<void>>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  async uploadBytes(digest: string, bytes: Buffer): Promise<UploadedObject> {
    const { bucket } = this.#dependencies
    const sha256 = hash('sha256', bytes)
    return this.#upload({ digest, size: bytes.length }, (key) => bucket.put(key, bytes, sha256))
  }

  /** A large file is sent in parts. */
  uploadFile(file: string, blob: StoredBlob): Promise<UploadedObject> {
    const { bucket } = this.#dependencies
    const { digest, size } = blob
    return this.#upload(blob, (key) =>
      size > maxSingleBytes
        ? this.#sendParts({ key, file, size })
        : this.#memory(async () => bucket.put(key, await readFile(file), digest)),
    )
  }

  /** Begins a multipart upload whose parts arrive over days. It is garbage once it was not renewed for its lifetime. */
  async begin(): Promise<{ key: string; uploadId: string }> {
    const key = await this.#addIntent('uploads')
    return { key, uploadId: await this.#startMultipart(key, this.#lifetimeSeconds) }
  }

  /** Postpones the expiry of an intent, and records its multipart upload. */
  async renew({ key, uploadId }: Multipart, seconds = this.#lifetimeSeconds): Promise<void> {
    await this.#dependencies.postgres.run(
      sql`update static_service.intents set upload_id = ${uploadId},
         expires_at = clock_timestamp() + make_interval(secs => ${seconds}) where object_key = ${key}`,
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
    const { bucket } = this.#dependencies
    await this.renew({ key, uploadId })
    // By an earlier attempt.
    const found = await bucket.head(key)
    if (found?.size === size) return { key, size, etag: found.etag }
    const last =
      tail && (await bucket.putPart({ key, uploadId, number }, tail, hash('sha256', tail)))
    const all = last ? [...parts, last] : parts
    return { key, size, etag: await bucket.finishMultipart({ key, uploadId, size }, all) }
  }

  /** An object to read, which nothing refers to yet. */
  open(object: StoredObject): ObjectReader {
    return new ObjectReader(this.#dependencies.bucket, object, () => undefined)
  }

  /** Turns the object into garbage, unless it was committed. */
  async discard(key: string): Promise<void> {
    const { postgres, graceSeconds } = this.#dependencies
    await postgres.run(discardIntents(sql`object_key = ${key}`, graceSeconds))
  }

  // Later than the row of an upload, which expires after its last request: a part may arrive slowly.
  get #lifetimeSeconds() {
    return this.#dependencies.lifetimeMs / 1000 + slowPartSeconds
  }

  async settle(): Promise<void> {
    await Promise.all(this.#discards)
  }

  async #upload(
    { digest, size }: StoredBlob,
    send: (key: string) => Promise<string | undefined>,
  ): Promise<UploadedObject> {
    const key = await this.#addIntent(digest)
    const discard = () => this.#discard(key)
    try {
      return { key, size, etag: await send(key), discard }
    } catch (error) {
      discard()
      throw error
    }
  }

  /** Begins a multipart upload. One that cannot be recorded is aborted, since no sweep would find it. */
  async #startMultipart(key: string, seconds: number): Promise<string> {
    const { bucket } = this.#dependencies
    const uploadId = await bucket.startMultipart(key)
    try {
      await this.renew({ key, uploadId }, seconds)
    } catch (error) {
      bucket.abortMultipart(key, uploadId).catch(() => undefined)
      throw error
    }
    return uploadId
  }

  async #sendParts({ key, file, size }: { key: string; file: string; size: number }) {
    const { bucket } = this.#dependencies
    const uploadId = await this.#startMultipart(key, intentSeconds)
    const parts: UploadedPart[] = []
    const slices = slicesOf(file, size)
    // One buffer for all its parts: new ones for each would wait for the garbage collector.
    const send = async () => {
      const buffer = Buffer.allocUnsafeSlow(partBytesOf(size))
      // An error ends the slices for all.
      for (const { number, ...slice } of slices) {
        parts[number - 1] = await this.#sendPart({ key, uploadId, number }, slice, buffer)
        await this.renew({ key, uploadId }, intentSeconds)
      }
    }
    const results = await Promise.allSettled(
      Array.from({ length: maxConcurrentParts }, () => this.#memory(send)),
    )
    try {
      for (const result of results) if (result.status === 'rejected') throw result.reason
      return await bucket.finishMultipart({ key, uploadId, size }, parts)
    } catch (error) {
      // No part is on its way any more. The client does not wait for it: the store may be silent. The sweep tries again.
      bucket.abortMultipart(key, uploadId).catch(() => undefined)
      throw error
    }
  }

  async #sendPart(
    where: Multipart & { number: number },
    { file, start, length }: FileSlice,
    buffer: Buffer,
  ): Promise<UploadedPart> {
    const sha256 = createHash('sha256')
    await using handle = await open(file)
    // In pieces, so that hashing them does not hold up the event loop.
    for (let at = 0; at < length; ) {
      const piece = Math.min(mebibyte, length - at)
      const { bytesRead } = await handle.read(buffer, at, piece, start + at)
      if (bytesRead === 0) throw new Error('a temporary file was truncated before it was uploaded')
      sha256.update(buffer.subarray(at, at + bytesRead))
      at += bytesRead
    }
    return this.#dependencies.bucket.putPart(
      where,
      buffer.subarray(0, length),
      sha256.digest('hex'),
    )
  }

  /** Records that an object is going to be uploaded. It is deleted unless it is committed before it expires. */
  async #addIntent(folder: string): Promise<string> {
    const { postgres, prefix } = this.#dependencies
    const key = [...(prefix ? [prefix] : []), folder, randomUUID()].join('/')
    await postgres.run(
      sql`insert into static_service.intents (object_key, expires_at)
         values (${key}, clock_timestamp() + make_interval(secs => ${intentSeconds}))`,
    )
    return key
  }

  // An intent that is left behind expires.
  #discard(key: string) {
    const discarding = this.discard(key).catch(this.#dependencies.onError)
    this.#discards.add(discarding)
    void discarding.finally(() => this.#discards.delete(discarding))
  }
}

// Far more than the upload of one part takes: each part renews it.
const intentSeconds = 3600

// Of a part of 8 MiB that arrives with the least speed that a body must have.
const slowPartSeconds = 9000

const mebibyte = 1_048_576
const maxSingleBytes = 16 * mebibyte
const minPartBytes = 8 * mebibyte
// S3 allows 10,000.
const maxParts = 9000
const maxConcurrentParts = 3
const maxBuffers = 6

/** The size of all parts but the last. */
export const partBytesOf = (size: number) =>
  Math.max(minPartBytes, Math.ceil(size / maxParts / mebibyte) * mebibyte)

function* slicesOf(file: string, size: number) {
  const partBytes = partBytesOf(size)
  for (let start = 0, number = 1; start < size; start += partBytes, number += 1)
    yield { number, file, start, length: Math.min(partBytes, size - start) }
}
