import { createHash, type Hash, hash } from 'node:crypto'
import { type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { headLength } from '../files/media-type.ts'
import { throwStorageFailure } from '../sqlite/storage-failure.ts'
import { blobMode, maxSmallBytes } from './blob-path.ts'

/** A stored content: its SHA-256 digest in hex, and its size in bytes. */
export interface StoredBlob {
  digest: string
  size: number
}

/** What the contents of a store hold in memory while they arrive. */
export class StagingMemory {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = defaultStagingBytes) {
    this.#maxBytes = maxBytes
  }

  /** Then contents go to their files as they come: many slow uploads must not fill the memory with begun batches. */
  get isShort(): boolean {
    return this.#bytes > this.#maxBytes
  }

  add(bytes: number) {
    this.#bytes += bytes
  }
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
  #hash: Hash | undefined
  #head = Buffer.alloc(0)
  /** Bytes that are not in the file. */
  #chunks: Buffer[] = []
  #handle: FileHandle | undefined
  #isOnDisk = false
  #flushing: Promise<void> | undefined
  #failure: unknown
  #batchBytes = 0
  #writing: Promise<void> | undefined
  #flushedBytes = 0
  #size = 0
  /** Bytes that count in `memory`. */
  #heldBytes = 0
  #release: (() => void) | undefined

  constructor(options: StagedBlobOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  /** Where the sealed bytes are that did not stay in memory. */
  get file(): string {
    return this.#options.file
  }

  /** The bytes that are in memory. */
  get memoryBytes(): number {
    return this.#isOnDisk ? 0 : this.#size
  }

  /** The first bytes, from which a media type can be detected. */
  get head(): Buffer {
    return (this.#hash ? this.#head : Buffer.concat(this.#chunks)).subarray(0, headLength)
  }

  /** @throws {HttpError} `insufficient_storage` when the disk is full. */
  async write(chunk: Buffer): Promise<void> {
    this.#size += chunk.length
    this.#hold(chunk.length)
    const { memory, memoryBytes } = this.#options
    if (!this.#hash && this.#size <= memoryBytes && !memory.isShort) this.#chunks.push(chunk)
    else await this.#writeOut(chunk).catch(throwStorageFailure)
  }

  /** Ends the content and flushes its file. @throws {HttpError} `insufficient_storage` when the disk is full. */
  async seal(): Promise<void> {
    if (this.#isOnDisk) await this.#flushFile().catch(throwStorageFailure)
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
      ? { digest: this.#hash.digest('hex'), bytes: undefined }
      : this.#takeHashed()
    const isSmall = size <= maxSmallBytes
    const storing = isSmall
      ? storeSmall(digest, bytes ?? (await readFile(file)))
      : storeFile(file, { digest, size })
    this.#release = await storing.catch(throwStorageFailure)
    if (!isSmall) this.#isOnDisk = false
    return { digest, size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.onEnd()
    await this.#close()
    this.#hold(-this.#heldBytes)
    this.#release?.()
    if (this.#isOnDisk) await rm(this.#options.file, { force: true })
  }

  // Writes behind: the next batch arrives, and is hashed, while the last one is written.
  async #writeOut(chunk: Buffer) {
    this.#chunks.push(chunk)
    this.#digest(this.#hash ? [chunk] : this.#chunks)
    this.#handle ??= await this.#open()
    this.#batchBytes += chunk.length
    const { memory } = this.#options
    if (this.#batchBytes < batchBytes && !memory.isShort) return
    await this.#writing
    this.#startWriting(this.#handle)
    this.#startFlushing(this.#handle)
    if (memory.isShort) await this.#writing
    if (this.#failure) throw this.#failure
  }

  #digest(chunks: Buffer[]) {
    this.#hash ??= createHash('sha256')
    for (const chunk of chunks) {
      this.#hash.update(chunk)
      if (this.#head.length < headLength)
        this.#head = Buffer.concat([this.#head, chunk.subarray(0, headLength)])
    }
  }

  #startWriting(handle: FileHandle) {
    const batch = this.#chunks.splice(0)
    this.#batchBytes = 0
    const length = batch.reduce((sum, chunk) => sum + chunk.length, 0)
    this.#writing = writeAll(handle, batch)
      .catch((error) => this.#fail(error))
      .finally(() => this.#hold(-length))
  }

  #hold(bytes: number) {
    this.#heldBytes += bytes
    this.#options.memory.add(bytes)
  }

  // Flushed while bytes still arrive, so that little is left to wait for at the end.
  #startFlushing(handle: FileHandle) {
    if (!this.#options.isFlushed || this.#flushing || this.#size - this.#flushedBytes < flushBytes)
      return
    this.#flushedBytes = this.#size
    this.#flushing = handle
      .datasync()
      .catch((error) => this.#fail(error))
      .finally(() => {
        this.#flushing = undefined
      })
  }

  // Keeps the first error: the kernel reports each failed write-back once, so the last fsync may succeed.
  #fail(error: unknown) {
    this.#failure ??= error
  }

  async #open() {
    const handle = await open(this.#options.file, 'wx', blobMode)
    this.#isOnDisk = true
    return handle
  }

  async #flushFile() {
    await this.#writing
    if (this.#handle) this.#startWriting(this.#handle)
    await this.#settle()
    if (this.#failure) throw this.#failure
    if (this.#options.isFlushed && this.#size > maxSmallBytes) await this.#handle?.sync()
    await this.#close()
  }

  async #settle() {
    await this.#writing
    await this.#flushing
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

  async #close() {
    const handle = this.#handle
    this.#handle = undefined
    await this.#settle()
    await handle?.close()
  }
}

// Large enough that no flush waits for the one before.
const flushBytes = 33_554_432

// Two batches are in memory: one that is written, and one that arrives.
const batchBytes = 1_048_576

const defaultStagingBytes = 33_554_432

/** Writes all bytes of these buffers: one call may take fewer than it was given. */
async function writeAll(handle: FileHandle, buffers: Buffer[]): Promise<void> {
  if (buffers.length === 0) return
  const { bytesWritten } = await handle.writev(buffers)
  const length = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
  if (bytesWritten < length) await writeWhole(handle, Buffer.concat(buffers).subarray(bytesWritten))
}

/** Writes all of the bytes. */
export async function writeWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at)
    at += bytesWritten
  }
}
