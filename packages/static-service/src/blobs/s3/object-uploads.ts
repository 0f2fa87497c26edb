import { createHash, hash, randomUUID } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { StoredBlob } from '../staged-blob.ts'
import type { Bucket, UploadedPart } from './bucket.ts'
import type { ContentTable } from './content-table.ts'
import { ObjectReader, type StoredObject } from './object-reader.ts'

interface Dependencies {
  bucket: Bucket
  table: ContentTable
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
  readonly #memory = new ByteBudget(uploadMemoryBytes)
  readonly #discards = new Set<Promise<void>>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Uploads bytes of a content, or of a form of it. */
  async uploadBytes(digest: string, bytes: Buffer): Promise<UploadedObject> {
    const { bucket } = this.#dependencies
    const sha256 = hash('sha256', bytes)
    return this.#upload({ digest, size: bytes.length }, (key) => bucket.put(key, bytes, sha256))
  }

  /** Uploads a file that has this digest. */
  uploadFile(file: string, blob: StoredBlob): Promise<UploadedObject> {
    const { bucket, table } = this.#dependencies
    return this.#upload(blob, (key) => {
      let uploadId = ''
      return uploadObject(
        { ...blob, key, file },
        {
          bucket,
          memory: this.#memory,
          onMultipart: (id) => {
            uploadId = id
            return table.renewIntent(key, id)
          },
          onProgress: () => table.renewIntent(key, uploadId),
        },
      )
    })
  }

  /** Begins a multipart upload whose parts arrive over days. It is garbage once it was not renewed for its lifetime. */
  async begin(): Promise<{ key: string; uploadId: string }> {
    const { bucket, table } = this.#dependencies
    const key = this.#newKey('uploads')
    await table.addIntent(key)
    const uploadId = await bucket.startMultipart(key)
    await this.renew({ key, uploadId })
    return { key, uploadId }
  }

  async renew({ key, uploadId }: Multipart): Promise<void> {
    const { table, lifetimeMs } = this.#dependencies
    await table.renewIntent(key, uploadId, lifetimeMs / 1000)
  }

  /** Sends the first bytes of a file as a part. */
  sendPart(where: Multipart & { number: number }, file: FileHandle, length: number) {
    return this.#memory.run(length, () =>
      sendPart(Buffer.allocUnsafeSlow(length), { ...where, file, start: 0 }, this.#dependencies),
    )
  }

  /** Joins the parts, and a tail, to an object of this size. May be repeated. Returns its entity tag. */
  async finish(
    { key, uploadId, parts }: Multipart & { parts: UploadedPart[] },
    { tail, size, number }: { tail: Buffer | null; size: number; number: number },
  ): Promise<string | undefined> {
    const { bucket } = this.#dependencies
    // An earlier attempt may have ended with a lost response.
    const found = await bucket.head(key)
    if (found?.size === size) return found.etag
    const last =
      tail && (await bucket.putPart({ key, uploadId, number }, tail, hash('sha256', tail)))
    return bucket.finishMultipart({ key, uploadId, size }, last ? [...parts, last] : parts)
  }

  /** An object to read, which nothing refers to yet. */
  open(object: StoredObject): ObjectReader {
    return new ObjectReader(this.#dependencies.bucket, object, () => undefined)
  }

  /** Turns the object into garbage, unless it was committed. */
  discard(key: string): Promise<void> {
    return this.#dependencies.table.discard(key)
  }

  /** Resolves when nothing is discarded any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#discards)
  }

  async #upload(
    { digest, size }: StoredBlob,
    send: (key: string) => Promise<string | undefined>,
  ): Promise<UploadedObject> {
    const { table } = this.#dependencies
    const key = this.#newKey(digest)
    const discard = () => this.#discard(key)
    try {
      await table.addIntent(key)
      return { key, size, etag: await send(key), discard }
    } catch (error) {
      discard()
      throw error
    }
  }

  #newKey(folder: string): string {
    const { prefix } = this.#dependencies
    return [...(prefix ? [prefix] : []), folder, randomUUID()].join('/')
  }

  // An intent that is left behind expires.
  #discard(key: string) {
    const discarding = this.discard(key).catch(this.#dependencies.onError)
    this.#discards.add(discarding)
    void discarding.finally(() => this.#discards.delete(discarding))
  }
}

interface Multipart {
  key: string
  uploadId: string
}

// Of the bytes that uploads hold while they are sent.
const uploadMemoryBytes = 67_108_864

interface Source {
  key: string
  file: string
  digest: string
  size: number
}

interface Transfer {
  bucket: Bucket
  /** The memory of all uploads together. */
  memory: ByteBudget
  /** Called with the id of a multipart upload before its first part is sent. */
  onMultipart: (uploadId: string) => Promise<void>
  /** Called after each part. */
  onProgress: () => Promise<void>
}

/** Uploads a file as an object, in parts if it is large. Returns the entity tag. Parts of a failed upload are discarded. */
async function uploadObject(source: Source, dependencies: Transfer): Promise<string | undefined> {
  await using handle = await open(source.file, 'r')
  if (source.size > maxSingleBytes) return await uploadParts(handle, source, dependencies)
  const { bucket, memory } = dependencies
  return await memory.run(source.size, async () => {
    return bucket.put(source.key, await readWhole(handle, source.size), source.digest)
  })
}

async function uploadParts(
  handle: FileHandle,
  { key, size }: Source,
  { bucket, memory, onMultipart, onProgress }: Transfer,
): Promise<string | undefined> {
  const uploadId = await bucket.startMultipart(key)
  try {
    await onMultipart(uploadId)
    const partBytes = partBytesOf(size)
    const uploadPart = async (at: number, buffer: Buffer): Promise<UploadedPart> => {
      const start = at * partBytes
      const bytes = buffer.subarray(0, Math.min(partBytes, size - start))
      const where = { key, uploadId, number: at + 1, file: handle, start }
      const part = await sendPart(bytes, where, { bucket })
      await onProgress()
      return part
    }
    // Each worker has one buffer: new ones for each part would wait for the garbage collector.
    const withBuffer = (work: (buffer: Buffer) => Promise<void>) =>
      memory.run(partBytes, () => work(Buffer.allocUnsafeSlow(partBytes)))
    const parts = await mapConcurrently(Math.ceil(size / partBytes), uploadPart, withBuffer)
    return await bucket.finishMultipart({ key, uploadId, size }, parts)
  } catch (error) {
    // The client does not wait for it: the store may be silent. The sweep of garbage tries again.
    bucket.abortMultipart(key, uploadId).catch(() => undefined)
    throw error
  }
}

/** Sends a part of a file, by way of a buffer of its length. */
async function sendPart(
  bytes: Buffer,
  { file, start, ...where }: Multipart & { number: number; file: FileHandle; start: number },
  { bucket }: { bucket: Bucket },
): Promise<UploadedPart> {
  const hash = createHash('sha256')
  await readInto(bytes, file, { start, onPiece: (piece) => hash.update(piece) })
  return bucket.putPart(where, bytes, hash.digest('hex'))
}

/** The first bytes of a file. */
export async function readWhole(file: FileHandle, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  await readInto(bytes, file, { start: 0 })
  return bytes
}

const mebibyte = 1_048_576
const maxSingleBytes = 16 * mebibyte
const minPartBytes = 8 * mebibyte
// S3 allows 10,000.
const maxParts = 9000
const maxConcurrentParts = 3

/** The size of all parts but the last. */
export const partBytesOf = (size: number) =>
  Math.max(minPartBytes, Math.ceil(size / maxParts / mebibyte) * mebibyte)

// Rejects once no task runs any more: a part must not arrive after the upload was aborted.
async function mapConcurrently<T>(
  count: number,
  task: (at: number, buffer: Buffer) => Promise<T>,
  withBuffer: (work: (buffer: Buffer) => Promise<void>) => Promise<void>,
): Promise<T[]> {
  const results: T[] = []
  let next = 0
  let failure: { error: unknown } | undefined
  const work = async (buffer: Buffer) => {
    while (next < count && !failure) {
      const at = next
      next += 1
      try {
        results[at] = await task(at, buffer)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: maxConcurrentParts }, () => withBuffer(work)))
  if (failure) throw failure.error
  return results
}

/** Reads in pieces, so that hashing them does not hold up the event loop. */
async function readInto(
  bytes: Buffer,
  handle: FileHandle,
  { start, onPiece }: { start: number; onPiece?: (piece: Uint8Array) => void },
): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const piece = Math.min(mebibyte, bytes.length - at)
    const { bytesRead } = await handle.read(bytes, at, piece, start + at)
    if (bytesRead === 0) throw new Error('a temporary file was truncated before it was uploaded')
    onPiece?.(bytes.subarray(at, at + bytesRead))
    at += bytesRead
  }
}

interface Waiting {
  bytes: number
  resolve: () => void
}

/** Bounds the memory of concurrent tasks: each takes so many bytes of a common budget, first come, first served. */
class ByteBudget {
  readonly #maxBytes: number
  readonly #waiting: Waiting[] = []
  #used = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Runs a task once its bytes are free. More bytes than the whole budget count as the whole budget. */
  async run<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    const share = Math.min(bytes, this.#maxBytes)
    await this.#acquire(share)
    try {
      return await task()
    } finally {
      this.#used -= share
      this.#admit()
    }
  }

  async #acquire(bytes: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ bytes, resolve })
    this.#admit()
    await promise
  }

  #admit() {
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      if (this.#used + next.bytes > this.#maxBytes) return
      this.#used += next.bytes
      this.#waiting.shift()
      next.resolve()
    }
  }
}
