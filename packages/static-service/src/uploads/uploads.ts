import { randomUUID } from 'node:crypto'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../blobs/blob-store.ts'
import { BytesLost, offsetConflict, uploadEnded, uploadLocked, uploadNotFound } from '../errors.ts'
import type { NewUpload, Upload, UploadTable } from './upload-table.ts'
import { UploadWriter, type WriterDependencies } from './upload-writer.ts'

interface Dependencies {
  table: UploadTable
  store: BlobStore
  /** What failed in the background; it is tried again. */
  onError: (error: unknown) => void
}

/** Uploads that arrive in several requests (tus 1.0). */
export class Uploads {
  readonly #dependencies: WriterDependencies
  readonly #written = new Set<string>()
  readonly #timer: NodeJS.Timeout
  #sweeping: Promise<void> = Promise.resolve()

  constructor({ table, store, onError }: Dependencies) {
    this.#dependencies = { table, store, hashes: new LRUCache({ max: 1000 }) }
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping.then(() => this.#sweep()).catch(onError)
    }, 10_000).unref()
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
   * Runs `work` as the only writer of an upload, which begins again where its bytes are lost. Returns the upload as it is then.
   * @throws {HttpError} `upload_locked` while another one is heard of, and as `find`.
   */
  async write(
    id: string,
    caller: Caller,
    work: (writer: UploadWriter) => Promise<void>,
  ): Promise<Upload> {
    await this.find(id, caller)
    // Also where a lease ended because this process stood still: both would write to the same bytes.
    if (this.#written.has(id)) throw uploadLocked()
    this.#written.add(id)
    try {
      const upload = await this.#dependencies.table.acquire(id)
      if (!upload) throw uploadLocked()
      // Ended before the response: the client may send its next request at once.
      await using writer = new UploadWriter(upload, this.#dependencies)
      await work(writer).catch(async (error) => {
        if (!(error instanceof BytesLost)) throw error
        await writer.record({ size: 0, state: null, tail: null, tried: 0 })
        throw offsetConflict(0) // A client asks after a conflict, and continues there.
      })
      return writer.upload
    } finally {
      this.#written.delete(id)
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sweeping
  }

  async #sweep() {
    const { table, store } = this.#dependencies
    for (const upload of await table.expire()) await store.discard(upload.id, upload)
  }
}
