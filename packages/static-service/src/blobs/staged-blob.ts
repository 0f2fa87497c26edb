import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { headLength } from '../files/media-type.ts'
import { throwStorageFailure } from '../sqlite/storage-failure.ts'
import { maxSmallBytes } from './blob-path.ts'
import { ContentHash } from './hashing.ts'
import { StagingFile, type StagingMemory } from './staging-file.ts'

/** A stored content: its SHA-256 digest in hex, and its size in bytes. */
export interface StoredBlob {
  digest: string
  size: number
}

interface StagedBlobOptions {
  /** The file for the bytes that do not stay in memory. */
  file: string
  /** Whether the file itself becomes the content: then it is flushed before the content counts as durable. */
  isFlushed: boolean
  /** How many bytes may stay in memory: no more than a small content has. */
  memoryBytes: number
  memory: StagingMemory
  /** Makes a small content durable and leases it until the returned function is called. */
  storeSmall: (digest: string, bytes: Uint8Array) => Promise<() => void>
  /** Makes a flushed file the content of its digest, durably, and leases it likewise. */
  storeFile: (file: string, blob: StoredBlob) => Promise<() => void>
  /** Called when the block that created the staged content ends. */
  onEnd: () => void
}

/**
 * A content that is arriving: in memory up to a limit, then in a file of `tmp` and hashed as it comes. Disposing of it
 * removes its bytes unless they were published and a file refers to them by then.
 */
export class StagedBlob implements AsyncDisposable {
  readonly #options: StagedBlobOptions
  /** Of a content that is no longer only in memory. */
  #hash: ContentHash | undefined
  /** Of a content that is only in memory. */
  #chunks: Buffer[] = []
  readonly #file: StagingFile
  #isOnDisk = false
  #size = 0
  /** Bytes of `#chunks`, which count in `memory`. */
  #heldBytes = 0
  /** Ends the lease of the stored content. */
  #storing: Promise<() => void> | undefined

  constructor(options: StagedBlobOptions) {
    const { file, memory, isFlushed } = options
    this.#options = options
    this.#file = new StagingFile({ file, memory, flushBytes: isFlushed ? flushBytes : undefined })
  }

  get size(): number {
    return this.#size
  }

  /** Where the sealed bytes are that did not stay in memory. */
  get file(): string {
    return this.#options.file
  }

  get memoryBytes(): number {
    return this.#isOnDisk ? 0 : this.#size
  }

  /** The first bytes, from which a media type can be detected. */
  get head(): Buffer {
    return this.#hash?.head ?? Buffer.concat(this.#chunks).subarray(0, headLength)
  }

  /** @throws {HttpError} `insufficient_storage` when the disk is full. */
  async write(chunk: Buffer): Promise<void> {
    this.#size += chunk.length
    const { memory, memoryBytes } = this.#options
    this.#chunks.push(chunk)
    this.#hold(chunk.length)
    if (this.#hash || this.#size > memoryBytes || memory.isShort) await this.#writeOut()
  }

  /** Ends the content and flushes its file. @throws {HttpError} `insufficient_storage` when the disk is full. */
  async seal(): Promise<void> {
    if (this.#isOnDisk) await this.#sealFile()
  }

  /**
   * Makes the sealed content durable under its digest, and leases it until this is disposed of: nothing collects it
   * before a file can refer to it.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<StoredBlob> {
    const { file, storeSmall, storeFile } = this.#options
    const size = this.#size
    const { digest, bytes } = this.#hash
      ? { digest: this.#hash.digest, bytes: undefined }
      : this.#takeHashed()
    const isSmall = size <= maxSmallBytes
    this.#storing = isSmall
      ? storeSmall(digest, bytes ?? (await readFile(file)))
      : storeFile(file, { digest, size })
    await this.#storing.catch(throwStorageFailure)
    if (!isSmall) this.#isOnDisk = false
    // In the folder a stored content needs no memory any more; S3's small ones stay there until a file refers to them.
    if (this.#options.isFlushed) this.#hold(-this.#heldBytes)
    return { digest, size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.onEnd()
    await this.#file.close()
    this.#hold(-this.#heldBytes)
    // Another content of the request may have failed while this one was stored.
    const release = await this.#storing?.catch(() => undefined)
    release?.()
    if (this.#isOnDisk) await this.#file.remove()
  }

  async #writeOut() {
    if (!this.#isOnDisk) {
      await this.#file.open()
      this.#isOnDisk = true
    }
    this.#hash ??= new ContentHash()
    const chunks = this.#chunks.splice(0)
    this.#hold(-this.#heldBytes)
    for (const chunk of chunks) {
      this.#hash.update(chunk)
      await this.#file.write(chunk)
    }
  }

  async #sealFile() {
    if (this.#options.isFlushed && this.#size > maxSmallBytes) await this.#file.flush()
    else await this.#file.settle()
    await this.#file.close()
  }

  #hold(bytes: number) {
    this.#heldBytes += bytes
    this.#options.memory.add(bytes)
  }

  #takeHashed() {
    const bytes = this.#takeBytes()
    return { digest: hash('sha256', bytes), bytes }
  }

  // One buffer of its own: a view would be copied to the worker with all of the buffer that it is a part of.
  #takeBytes(): Uint8Array {
    const bytes = new Uint8Array(this.#size)
    let at = 0
    for (const chunk of this.#chunks.splice(0)) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    return bytes
  }
}

// Large enough that no flush waits for the one before.
const flushBytes = 33_554_432
