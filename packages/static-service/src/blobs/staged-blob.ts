import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { headLength } from '../files/media-type.ts'
import { maxSmallBytes } from './blob-path.ts'
import { StagingFile, type StagingMemory } from './staging-file.ts'

/** A stored content: its SHA-256 digest in hex, and its size in bytes. */
export interface StoredBlob {
  digest: string
  size: number
}

/** SHA-256 of a content as it arrives, and its first bytes, from which a media type can be detected. */
export class ContentHash {
  readonly #hash = createHash('sha256')
  #head = Buffer.alloc(0)
  #size = 0

  get size(): number {
    return this.#size
  }

  get head(): Buffer {
    return this.#head
  }

  /** In hex, of the bytes so far. */
  get digest(): string {
    return this.#hash.copy().digest('hex')
  }

  update(chunk: Buffer): void {
    this.#hash.update(chunk)
    this.#size += chunk.length
    const missing = headLength - this.#head.length
    if (missing > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, missing)])
  }
}

/** `isReferenced`: a file has referred to the content since. */
type EndLease = (isReferenced: boolean) => void

interface StagedBlobOptions {
  /** The file for the bytes that do not stay in memory. */
  file: string
  /** Of the bytes that the file has, all and flushed, where they came in earlier requests. */
  arrived?: ContentHash | undefined
  /** Whether the file itself becomes the content: then it is flushed before the content counts as durable. */
  isFlushed: boolean
  memory: StagingMemory
  /** Makes a small content durable and leases it until the returned function is called. */
  storeSmall: (digest: string, bytes: Uint8Array) => Promise<EndLease>
  /** Makes a flushed file the content of its digest, durably, and leases it likewise. */
  storeFile: (file: string, blob: StoredBlob) => Promise<EndLease>
  /** Called when the block that created the staged content ends. */
  onEnd: () => void
}

/**
 * A content that is arriving: hashed as it comes, in memory while it is small, else in a file of `tmp`. Disposing of it
 * removes its bytes unless they were published and a file refers to them by then.
 */
export class StagedBlob implements AsyncDisposable {
  readonly #options: StagedBlobOptions
  readonly #file: StagingFile
  #hash: ContentHash | undefined
  /** The file has become the content. */
  #isPublished = false
  /** Ends the lease of the stored content. */
  #storing: Promise<EndLease> | undefined
  #isReferenced = false

  constructor(options: StagedBlobOptions) {
    const { file, memory, isFlushed, arrived } = options
    this.#options = options
    this.#hash = arrived ?? new ContentHash()
    this.#file = new StagingFile({
      ...{ file, memory, resumeAt: arrived?.size },
      flushBytes: isFlushed ? flushBytes : undefined,
    })
  }

  /** Of the bytes so far; undefined once they are kept. */
  get hash(): ContentHash | undefined {
    return this.#hash
  }

  get size(): number {
    return this.#file.size
  }

  /** The first bytes, from which a media type can be detected. */
  get head(): Buffer {
    return this.#hash?.head ?? Buffer.alloc(0)
  }

  /** @throws {HttpError} `insufficient_storage` when the disk is full. */
  write(chunk: Buffer): Promise<void> {
    this.#hash?.update(chunk)
    return this.#file.write(chunk)
  }

  /** Ends the content and flushes its file. @throws {HttpError} `insufficient_storage` when the disk is full. */
  async seal(): Promise<void> {
    const isSmall = this.size <= maxSmallBytes
    if (isSmall && !this.#file.isOpen) return
    if (this.#options.isFlushed && !isSmall) await this.#file.flush()
    else await this.#file.settle()
    await this.#file.close()
  }

  /** Ends the content in a file, which it returns. @throws {HttpError} as `seal`. */
  async spool(): Promise<string> {
    await this.#file.settle()
    await this.#file.close()
    return this.#options.file
  }

  /**
   * Makes the sealed content durable under its digest, and leases it until this is disposed of: nothing collects it
   * before a file can refer to it.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<StoredBlob> {
    const { file, storeSmall, storeFile, isFlushed } = this.#options
    const blob = { digest: this.#hash?.digest ?? '', size: this.size }
    const isSmall = blob.size <= maxSmallBytes
    this.#hash = undefined
    const bytes = isSmall ? this.#file.take() : undefined
    this.#storing = isSmall
      ? storeSmall(blob.digest, bytes ?? (await readFile(file)))
      : storeFile(file, blob)
    await this.#storing
    this.#isPublished = !isSmall
    // In the folder a stored content needs no memory any more; S3's small ones stay there until a file refers to them.
    if (isFlushed) this.#file.release()
    return blob
  }

  /** A file refers to the content, or has been removed since. */
  markReferenced(): void {
    this.#isReferenced = true
  }

  // What a failing disk keeps is removed by the next start: an error here would hide that of the request, or its success.
  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.onEnd()
    await this.#file.close().catch(() => undefined)
    // Another content of the request may have failed while this one was stored.
    const release = await this.#storing?.catch(() => undefined)
    release?.(this.#isReferenced)
    if (this.#isPublished) this.#file.release()
    else await this.#file.remove().catch(() => undefined)
  }
}

// Large enough that no flush waits for the one before.
const flushBytes = 33_554_432
