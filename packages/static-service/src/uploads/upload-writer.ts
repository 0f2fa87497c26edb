import type { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob } from '../blobs/blob-store.ts'
import { ContentHash } from '../blobs/hashing.ts'
import type { StoredBlob } from '../blobs/staged-blob.ts'
import { uploadLocked } from '../errors.ts'
import type { HeldUpload, Upload, UploadChange, UploadTable } from './upload-table.ts'

interface Dependencies {
  table: UploadTable
  store: BlobStore
  /** Of what this process has received and recorded: without it a content is read again at its end. */
  hashes: LRUCache<string, ContentHash>
  onClose: () => void
}

/** A content that is ready for the catalog, as a staged blob is. */
export interface SealedUpload {
  digest: string
  head: Buffer
  keep: () => Promise<StoredBlob>
  /** Whether the catalog may have been given it before, and nobody knows. */
  isRepeated: boolean
}

/** The only writer of an upload. Silent for ten seconds, it can lose the upload to another one; then it records nothing. */
export class UploadWriter implements AsyncDisposable {
  readonly #dependencies: Dependencies
  readonly #blob: ResumableBlob
  readonly #timer = setInterval(() => void this.#renew(), renewalMs).unref()
  readonly #lost = new AbortController()
  readonly #closed = Promise.withResolvers<void>()
  #upload: HeldUpload
  #hash: ContentHash | undefined
  /** When bytes last arrived; infinite while no client is waited for. */
  #heardAt = Number.POSITIVE_INFINITY

  constructor(upload: HeldUpload, dependencies: Dependencies) {
    const { store, hashes } = dependencies
    this.#upload = upload
    this.#dependencies = dependencies
    this.#blob = store.resume(upload.id, upload, upload.epoch)
    const hash = upload.size === 0 ? new ContentHash() : hashes.get(upload.id)
    if (hash?.size === upload.size) this.#hash = hash
  }

  /** As it is recorded. */
  get upload(): Upload {
    return this.#upload
  }

  /** Aborted when another writer takes over. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** @throws {HttpError} `upload_locked` where another writer has the upload. */
  async record(change: UploadChange): Promise<void> {
    const { id, writer } = this.#upload
    if (!(await this.#dependencies.table.update(id, writer, change))) throw uploadLocked()
    this.#upload = { ...this.#upload, ...change }
  }

  /**
   * Receives bytes, and records those that are durable: all but the last 8 MiB as they arrive, and all at the end, also where
   * that is an error, which is thrown then. With `isWhole`, none of them before the end, and none with an error.
   */
  async receive(chunks: AsyncIterable<Buffer>, isWhole: boolean): Promise<void> {
    const { hashes } = this.#dependencies
    let [unsaved, saving, failure] = [0, Promise.resolve(), undefined as unknown]
    hashes.delete(this.#upload.id) // Until what it takes is recorded.
    this.#heardAt = performance.now()
    try {
      for await (const chunk of chunks) {
        this.#heardAt = performance.now()
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
    this.#heardAt = Number.POSITIVE_INFINITY
    const [saved] = await Promise.all([this.#blob.save(true), saving])
    await this.record(saved)
    if (this.#hash) hashes.set(this.#upload.id, this.#hash)
    if (failure !== undefined) throw failure
  }

  /** Ends the whole content. May be repeated. */
  async seal(): Promise<SealedUpload> {
    const isRepeated = this.#upload.publishing !== null
    const saved = await this.#blob.seal()
    this.#hash ??= await this.#readHash()
    const { digest, head } = this.#hash
    await this.record({ ...saved, publishing: digest })
    this.#dependencies.hashes.set(this.#upload.id, this.#hash)
    return { digest, head, isRepeated, keep: () => this.#blob.keep(digest) }
  }

  /** Records how it became a file, and removes its bytes. */
  async finish(outcome: string): Promise<void> {
    await this.record({ outcome, tail: null })
    await this.#discard().catch(() => undefined) // The next start, or the sweep of the bucket, finds it.
  }

  /** Ends the upload, and removes its bytes. */
  async end(): Promise<void> {
    const { id, writer } = this.#upload
    if (!(await this.#dependencies.table.end(id, writer))) throw uploadLocked()
    await this.#discard()
  }

  /** For another writer that has taken over: resolves when this one has ended. */
  async stop(): Promise<void> {
    this.#lost.abort()
    await this.#closed.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { id, writer } = this.#upload
    const { table, onClose } = this.#dependencies
    clearInterval(this.#timer)
    await this.#blob[Symbol.asyncDispose]()
    onClose()
    this.#closed.resolve()
    // A lease that cannot be released expires.
    await table.release(id, writer).catch(() => undefined)
  }

  async #discard() {
    const { store, hashes } = this.#dependencies
    hashes.delete(this.#upload.id)
    await store.discard(this.#upload.id, this.#upload)
  }

  async #readHash() {
    const hash = new ContentHash()
    for await (const piece of this.#blob.read()) hash.update(piece)
    return hash
  }

  async #renew() {
    if (performance.now() - this.#heardAt > renewalMs) return
    await this.record({}).catch((error) => error.code === 'upload_locked' && this.#lost.abort())
  }
}

// So many are made durable while as many arrive.
const saveBytes = 4_194_304
const renewalMs = 2000
