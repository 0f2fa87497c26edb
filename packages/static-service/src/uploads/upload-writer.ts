import type { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob } from '../blobs/blob-store.ts'
import { ContentHash } from '../blobs/hashing.ts'
import type { StagedBlob } from '../blobs/staged-blob.ts'
import { uploadLocked } from '../errors.ts'
import type { Upload, UploadChange, UploadTable } from './upload-table.ts'

export interface WriterDependencies {
  table: UploadTable
  store: BlobStore
  /** Of what this process has received and recorded: without it a content is read again at its end. */
  hashes: LRUCache<string, ContentHash>
}

/** The only writer of an upload. One that could not renew its lease can lose it to another one; then it records nothing. */
export class UploadWriter implements AsyncDisposable {
  readonly #dependencies: WriterDependencies
  readonly #blob: ResumableBlob
  readonly #timer = setInterval(() => void this.record({}).catch(() => undefined), 2000).unref()
  #upload: Upload
  #hash: ContentHash | undefined

  constructor(upload: Upload, dependencies: WriterDependencies) {
    const { store, hashes } = dependencies
    this.#upload = upload
    this.#dependencies = dependencies
    this.#blob = store.resume(upload.id, upload, upload.epoch)
    const hash = upload.size === 0 ? new ContentHash() : hashes.get(upload.id)
    hashes.delete(upload.id) // Until what it takes is recorded.
    if (hash?.size === upload.size) this.#hash = hash
  }

  /** As it is recorded. */
  get upload(): Upload {
    return this.#upload
  }

  /** @throws {HttpError} `upload_locked` where another writer has the upload. */
  async record(change: UploadChange, expiresInMs?: number): Promise<void> {
    const { table } = this.#dependencies
    if (!(await table.update(this.#upload, change, expiresInMs))) throw uploadLocked()
    this.#upload = { ...this.#upload, ...change }
  }

  /**
   * Receives bytes, and records those that are durable: all but the last 8 MiB as they arrive, and all at the end, also where
   * that is an error, which is thrown then. With `isWhole`, none of them before the end, and none with an error.
   */
  async receive(chunks: AsyncIterable<Buffer>, isWhole: boolean): Promise<void> {
    let [unsaved, saving, failure] = [0, Promise.resolve(), undefined as unknown]
    try {
      for await (const chunk of chunks) {
        if (!isWhole && unsaved >= saveBytes) {
          await saving
          saving = this.#blob.save(false).then((saved) => this.record(saved))
          saving.catch(() => undefined) // Thrown where it is awaited.
          unsaved = 0
        }
        this.#hash?.update(chunk)
        await this.#blob.write(chunk)
        unsaved += chunk.length
      }
    } catch (error) {
      if (isWhole) throw error
      failure = error
    }
    const [saved] = await Promise.all([this.#blob.save(true), saving])
    const isTried = failure === undefined && saved.size === this.#upload.length
    await this.record(isTried ? { ...saved, tried: 1 } : saved)
    if (failure !== undefined) throw failure
  }

  /** The whole content, for the catalog. May be repeated. */
  async stage(): Promise<StagedBlob> {
    const staged = await this.#blob.stage(this.#hash)
    this.#hash = staged.hash
    return staged
  }

  /** Ends the upload and removes its bytes: as a file, which is told until it expires, or without an outcome. */
  async end(outcome?: string): Promise<void> {
    await (outcome ? this.record({ outcome, tail: null }) : this.record({ tail: null }, 0))
    this.#hash = undefined
    // What this leaves is found by a sweep, or by the next start.
    await this.#dependencies.store.discard(this.#upload.id, this.#upload).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { table, hashes } = this.#dependencies
    const { id, size } = this.#upload
    clearInterval(this.#timer)
    await this.#blob[Symbol.asyncDispose]()
    if (this.#hash?.size === size) hashes.set(id, this.#hash)
    // A lease that cannot be released expires.
    await table.release(this.#upload).catch(() => undefined)
  }
}

// So many are made durable while as many arrive.
const saveBytes = 4_194_304
