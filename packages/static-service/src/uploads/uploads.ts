import { randomUUID } from 'node:crypto'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { ContentHash } from '../blobs/hashing.ts'
import { uploadEnded, uploadLocked, uploadNotFound } from '../errors.ts'
import type { NewUpload, Upload, UploadTable } from './upload-table.ts'
import { UploadWriter } from './upload-writer.ts'

interface Dependencies {
  table: UploadTable
  store: BlobStore
  /** After which an unfinished upload is removed. */
  lifetimeMs: number
  /** What failed in the background; it is tried again. */
  onError: (error: unknown) => void
}

/** Uploads that arrive in several requests (tus 1.0). */
export class Uploads {
  readonly #dependencies: Dependencies
  readonly #hashes = new LRUCache<string, ContentHash>({ max: 1000 })
  readonly #writers = new Map<string, UploadWriter>()
  readonly #timer: NodeJS.Timeout
  #sweeping: Promise<void> = Promise.resolve()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    const intervalMs = Math.min(Math.max(dependencies.lifetimeMs / 16, 250), 60_000)
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping.then(() => this.#sweep()).catch(dependencies.onError)
    }, intervalMs).unref()
  }

  /** @throws {HttpError} `too_many_uploads`. */
  create(upload: NewUpload): Promise<Upload> {
    return this.#dependencies.table.create(randomUUID(), upload)
  }

  /** @throws {HttpError} `upload_not_found`, also outside the caller's own or its folders, or `upload_ended`. */
  async find(id: string, caller: Caller): Promise<Upload> {
    const upload = await this.#dependencies.table.find(id)
    if (upload?.owner !== caller.username || !allowsPath(caller, upload.path))
      throw uploadNotFound()
    if (upload.isEnded) throw uploadEnded()
    return upload
  }

  /**
   * Runs `work` as the only writer of an upload, unless it falls silent for ten seconds. Returns the upload as it is then.
   * @throws {HttpError} `upload_locked` while another one is heard of, and as `find`.
   */
  async write(
    id: string,
    caller: Caller,
    work: (writer: UploadWriter) => Promise<void>,
  ): Promise<Upload> {
    await this.find(id, caller)
    const upload = await this.#dependencies.table.acquire(id, randomUUID())
    if (!upload) {
      await this.find(id, caller)
      throw uploadLocked()
    }
    // Both would write to the same bytes.
    await this.#writers.get(id)?.stop()
    // Ended before the response: the client may send its next request at once.
    await using writer = new UploadWriter(upload, {
      ...{ ...this.#dependencies, hashes: this.#hashes },
      onClose: () => this.#writers.get(id) === writer && this.#writers.delete(id),
    })
    this.#writers.set(id, writer)
    await work(writer)
    return writer.upload
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sweeping
  }

  async #sweep() {
    const { table, store } = this.#dependencies
    for (const upload of await table.expire()) {
      this.#hashes.delete(upload.id)
      await store.discard(upload.id, upload)
    }
  }
}
