import type { Readable } from 'node:stream'
import { HttpError } from '@domains-and-files/http'
import type { LRUCache } from 'lru-cache'
import type { BlobStore, ResumableBlob } from '../blobs/blob-store.ts'
import { ContentHash } from '../blobs/hashing.ts'
import type { StoredBlob } from '../blobs/staged-blob.ts'
import { truncatedBody, uploadLocked } from '../errors.ts'
import type { Upload, UploadChange, UploadTable } from './upload-table.ts'

interface Dependencies {
  table: UploadTable
  store: BlobStore
  /** Names it in the row. */
  writer: string
  hashes: LRUCache<string, ContentHash>
  onClose: () => void
}

/** The bytes of one request. */
export interface UploadBody {
  body: Readable
  /** Bytes at its beginning that the upload has already. */
  skip: number
  /** Whether they count only once `check` has accepted all of them. */
  isWhole: boolean
  /** Called with each chunk, and without one at the end. Throws to refuse the bytes from there. */
  check: (chunk?: Buffer) => void
}

/** A content that is ready for the catalog, as a staged blob is. */
export interface ReadyBlob {
  head: Buffer
  keep: () => Promise<StoredBlob>
}

/** How an upload becomes a file. */
export interface Publication {
  /** Whether an earlier attempt, whose end is unknown, has stored this content at the path: the headers that tell it. */
  findStored: (digest: string) => Promise<Record<string, string> | undefined>
  /** Stores the file. Returns the headers that tell it. */
  store: (blob: ReadyBlob) => Promise<Record<string, string>>
}

/** The only writer of an upload. Silent for ten seconds, it can lose the upload to another one; then it records nothing. */
export class UploadWriter implements AsyncDisposable {
  readonly #dependencies: Dependencies
  readonly #blob: ResumableBlob
  readonly #timer: NodeJS.Timeout
  readonly #closed = Promise.withResolvers<void>()
  #upload: Upload
  #hash: ContentHash | undefined
  #body: Readable | undefined
  #isLost = false
  /** Whether bytes have arrived since the last renewal, or the service itself is at work. */
  #isHeard = false
  #isPublishing = false

  constructor(upload: Upload, dependencies: Dependencies) {
    const { store, hashes } = dependencies
    this.#upload = upload
    this.#dependencies = dependencies
    this.#blob = store.resume(upload.id, upload, upload.epoch)
    const hash = upload.size === 0 ? new ContentHash() : hashes.get(upload.id)
    this.#hash = hash?.size === upload.size ? hash : undefined
    this.#timer = setInterval(() => void this.#renew(), renewalMs).unref()
  }

  /** As it is recorded. */
  get upload(): Upload {
    return this.#upload
  }

  setLength(length: number): Promise<void> {
    return this.#record({ length })
  }

  /**
   * Receives bytes, and records those that are durable: all but the last 8 MiB as they arrive, and all at the end, also where
   * the request is cut.
   * @throws {HttpError} `malformed_body` for a body that is cut, and what `check` throws.
   */
  async receive({ body, skip, isWhole, check }: UploadBody): Promise<void> {
    const hash = this.#hash?.copy()
    let [skipped, unsaved, saving] = [0, 0, Promise.resolve()]
    const save = async () => {
      await saving
      saving = this.#blob.progress().then((saved) => this.#record(saved))
      saving.catch(() => undefined) // Thrown where it is awaited.
      unsaved = 0
    }
    this.#body = body
    try {
      // Not destroyed on an error: the socket must stay open for the response.
      for await (const chunk of body.iterator({ destroyOnReturn: false })) {
        check(chunk)
        this.#isHeard = true
        const bytes = chunk.subarray(Math.min(skip - skipped, chunk.length))
        skipped += chunk.length - bytes.length
        if (bytes.length === 0) continue
        // Once more bytes come: the end of the request saves the last ones.
        if (!isWhole && unsaved >= flushBytes) await save()
        hash?.update(bytes)
        await this.#blob.write(bytes)
        unsaved += bytes.length
      }
      check()
    } catch (error) {
      const isTruncated = body.errored !== null
      body.resume()
      if (isWhole || this.#isLost) throw error
      await saving
      await this.#flush(hash)
      throw isTruncated ? truncatedBody(error) : error
    }
    await saving
    await this.#flush(hash)
  }

  /** Makes the whole content a file. A failure keeps the bytes, so that it can be tried again. */
  async publish({ findStored, store }: Publication): Promise<Record<string, string>> {
    const { id, publishing } = this.#upload
    this.#isPublishing = true
    await this.#record(await this.#blob.seal())
    this.#hash ??= await this.#readHash()
    this.#dependencies.hashes.set(id, this.#hash)
    const { digest, head } = this.#hash
    const stored = publishing === digest ? await findStored(digest) : undefined
    if (stored) return this.#finish(stored)
    await this.#record({ publishing: digest })
    const outcome = await store({ head, keep: () => this.#blob.keep(digest) }).catch(
      async (error: unknown) => {
        const isRefused = error instanceof HttpError && error.code !== 'outcome_unknown'
        if (isRefused) await this.#record({ publishing: null })
        throw error
      },
    )
    return this.#finish(outcome)
  }

  /** Ends the upload, and removes its bytes. */
  async end(): Promise<void> {
    const { table, writer } = this.#dependencies
    this.#demand(await table.end(this.#upload.id, writer))
    await this.#discard()
  }

  /** For another writer that has taken over: resolves when this one has ended. */
  async stop(): Promise<void> {
    this.#isLost = true
    this.#body?.destroy()
    await this.#closed.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { table, writer, onClose } = this.#dependencies
    clearInterval(this.#timer)
    await this.#blob[Symbol.asyncDispose]()
    onClose()
    this.#closed.resolve()
    // A lease that cannot be released expires.
    await table.release(this.#upload.id, writer).catch(() => undefined)
  }

  async #finish(outcome: Record<string, string>) {
    await this.#record({ outcome })
    await this.#discard().catch(() => undefined) // The next start, or the sweep of the bucket, finds it.
    return outcome
  }

  async #discard() {
    const { store, hashes } = this.#dependencies
    hashes.delete(this.#upload.id)
    await store.discard(this.#upload.id, this.#upload)
  }

  async #flush(hash: ContentHash | undefined) {
    const { hashes } = this.#dependencies
    const saved = await this.#blob.flush()
    await this.#record(saved)
    this.#hash = hash
    if (hash) hashes.set(this.#upload.id, hash)
    else hashes.delete(this.#upload.id)
  }

  async #record(change: UploadChange) {
    const { table, writer } = this.#dependencies
    this.#demand(await table.update(this.#upload.id, writer, change))
    this.#upload = { ...this.#upload, ...change }
  }

  async #readHash() {
    const hash = new ContentHash()
    for await (const piece of this.#blob.read()) hash.update(piece)
    return hash
  }

  async #renew() {
    if (!this.#isHeard && !this.#isPublishing) return
    this.#isHeard = false
    const { table, writer } = this.#dependencies
    const isHeld = await table.update(this.#upload.id, writer, {}).catch(() => true) // The next one may succeed.
    if (!isHeld) void this.stop()
  }

  /** @throws {HttpError} `upload_locked` where another writer has the upload. */
  #demand(isHeld: boolean) {
    if (isHeld && !this.#isLost) return
    this.#isLost = true
    throw uploadLocked()
  }
}

// So many are made durable while as many arrive.
const flushBytes = 4_194_304
const renewalMs = 2000
