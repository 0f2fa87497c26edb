import { hash, randomUUID } from 'node:crypto'
import type { StoredBlob } from '../staged-blob.ts'
import type { Bucket } from './bucket.ts'
import { ByteBudget } from './byte-budget.ts'
import type { ContentTable } from './content-table.ts'
import type { StoredObject } from './object-reader.ts'
import { uploadObject } from './object-upload.ts'

interface Dependencies {
  bucket: Bucket
  table: ContentTable
  /** Of all keys, without a slash at its end; may be empty. */
  prefix: string
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

  /** Resolves when nothing is discarded any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#discards)
  }

  async #upload(
    { digest, size }: StoredBlob,
    send: (key: string) => Promise<string | undefined>,
  ): Promise<UploadedObject> {
    const { prefix, table } = this.#dependencies
    const key = [...(prefix ? [prefix] : []), digest, randomUUID()].join('/')
    const discard = () => this.#discard(key)
    try {
      await table.addIntent(key)
      return { key, size, etag: await send(key), discard }
    } catch (error) {
      discard()
      throw error
    }
  }

  // An intent that is left behind expires.
  #discard(key: string) {
    const { table, onError } = this.#dependencies
    const discarding = table.discard(key).catch(onError)
    this.#discards.add(discarding)
    void discarding.finally(() => this.#discards.delete(discarding))
  }
}

// Of the bytes that uploads hold while they are sent.
const uploadMemoryBytes = 67_108_864
