import { hash, randomUUID } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { StoredBlob } from '../staged-blob.ts'
import type { Bucket, UploadedPart } from './bucket.ts'
import type { ContentTable } from './content-table.ts'
import { ObjectReader, type StoredObject } from './object-reader.ts'
import { ByteBudget, type Multipart, sendPart, uploadObject } from './send-file.ts'

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

  async uploadBytes(digest: string, bytes: Buffer): Promise<UploadedObject> {
    const { bucket } = this.#dependencies
    const sha256 = hash('sha256', bytes)
    return this.#upload({ digest, size: bytes.length }, (key) => bucket.put(key, bytes, sha256))
  }

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

// Of the bytes that uploads hold while they are sent.
const uploadMemoryBytes = 67_108_864
