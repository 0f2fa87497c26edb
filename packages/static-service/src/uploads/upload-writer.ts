import type { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob } from '../blobs/blob-store.ts'
import { ContentHash } from '../blobs/hashing.ts'
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
  async record(change: UploadChange): Promise<void> {
    if (!(await this.#dependencies.table.update(this.#upload, change))) throw uploadLocked()
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
    await this.record(saved)
    if (failure !== undefined) throw failure
  }

  /** Ends the whole content, for the catalog. May be repeated. */
  async seal() {
    const saved = await this.#blob.seal()
    this.#hash ??= await hashOf(this.#blob.read())
    await this.record(saved.state === this.#upload.state ? {} : saved)
    const { digest, head } = this.#hash
    return { digest, head, keep: () => this.#blob.keep(digest) }
  }

  /** Records how it became a file, and removes its bytes. */
  async finish(outcome: string): Promise<void> {
    await this.record({ outcome, tail: null })
    await this.#discard().catch(() => undefined) // The next start, or the sweep of the bucket, finds it.
  }

  /** Ends the upload, and removes its bytes. */
  async end(): Promise<void> {
    if (!(await this.#dependencies.table.end(this.#upload))) throw uploadLocked()
    await this.#discard()
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

  async #discard() {
    this.#hash = undefined
    await this.#dependencies.store.discard(this.#upload.id, this.#upload)
  }
}

async function hashOf(pieces: AsyncIterable<Buffer>) {
  const hash = new ContentHash()
  for await (const piece of pieces) hash.update(piece)
  return hash
}

// So many are made durable while as many arrive.
const saveBytes = 4_194_304
