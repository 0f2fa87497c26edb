import { type FileHandle, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { BytesLost } from '../errors.ts'
import { blobMode, maxSmallBytes } from './blob-path.ts'

/** Counts the memory that the arriving blobs of a store hold. */
export class StagingMemory {
  readonly arriving = new Set<object>()
  readonly #maxBytes: number
  readonly #demandRoom: (bytes: () => number) => Promise<void>
  #bytes = 0

  /** `demandRoom` makes room for so many bytes on the disk, or throws. */
  constructor(maxBytes = defaultStagingBytes, demandRoom = async (_bytes: () => number) => {}) {
    this.#maxBytes = maxBytes
    this.#demandRoom = demandRoom
  }

  /** Whether to write each chunk at once: partial batches of many slow uploads would fill the memory. */
  get isShort(): boolean {
    return this.#bytes > this.#maxBytes
  }

  add(bytes: number) {
    this.#bytes += bytes
  }

  /** Makes room on the disk for all held bytes. @throws {HttpError} `insufficient_storage` */
  demandRoom(): Promise<void> {
    return this.#demandRoom(() => this.#bytes)
  }
}

interface StagingFileOptions {
  file: string
  memory: StagingMemory
  /** Unflushed bytes that start a flush in the background; undefined: only `flush` does. */
  flushBytes?: number | undefined
  /** Called when so many bytes are durable, after a flush in the background. */
  onFlushed?: (size: number) => Promise<void>
  /** Saved bytes of an earlier request's file, which is truncated to them. Absent: there is no file yet. */
  resumeAt?: number | undefined
}

/**
 * The file of an arriving blob, created once the blob is not small. Write-behind: the next batch arrives while the last
 * one is written. `write`, `settle` and `flush` throw `insufficient_storage` when the disk is full, and `BytesLost` if
 * the file of an earlier request has become shorter.
 */
export class StagingFile {
  readonly #options: StagingFileOptions
  #chunks: Buffer[] = []
  /** Memory of the last chunk, if it joins small ones. */
  #joined: Buffer | undefined
  #batchBytes = 0
  #handle: FileHandle | undefined
  #isCreated: boolean
  #writing: Promise<void> = Promise.resolve()
  #flushing: Promise<void> | undefined
  #failure: unknown
  #size: number
  #flushedBytes: number
  #heldBytes = 0

  constructor(options: StagingFileOptions) {
    this.#options = options
    this.#size = options.resumeAt ?? 0
    this.#isCreated = options.resumeAt !== undefined
    this.#flushedBytes = this.#size
  }

  get file(): string {
    return this.#options.file
  }

  /** Bytes written or queued for writing. */
  get size(): number {
    return this.#size
  }

  get isOpen(): boolean {
    return this.#isCreated
  }

  /** Takes over the chunk: its memory is freed once it is written, so the caller must not use it again. */
  async write(chunk: Buffer): Promise<void> {
    this.#queue(chunk)
    this.#size += chunk.length
    this.#batchBytes += chunk.length
    this.#hold(chunk.length)
    const { memory, flushBytes } = this.#options
    const isSmall = this.#size <= maxSmallBytes && !memory.isShort
    const handle = isSmall ? undefined : await this.#open()
    const isFlushDue = this.#size - this.#flushedBytes > (flushBytes ?? Number.POSITIVE_INFINITY)
    if (!handle || (this.#batchBytes < batchBytes && !memory.isShort && !isFlushDue)) return
    await this.#writing
    this.#startWriting(handle)
    if (isFlushDue) await this.#startFlushing(handle)
    if (memory.isShort) await this.#writing
    this.#demandNoFailure()
  }

  /** Writes all queued bytes, without fsync. */
  async settle(): Promise<void> {
    const handle = await this.#open()
    this.#startWriting(handle)
    await this.#writing
    await this.#flushing
    this.#demandNoFailure()
  }

  /** Makes all bytes written before the call durable; writes may continue meanwhile. */
  async flush(): Promise<void> {
    const handle = await this.#open()
    this.#startWriting(handle)
    await this.#writing
    // The mtime is part of the recorded stamp, so fsync includes it. Resumed files are flushed per request: without mtime.
    const flushing = this.#options.resumeAt === undefined ? handle.sync() : handle.datasync()
    await flushing.catch((error) => this.#fail(error))
    await this.#flushing
    this.#demandNoFailure()
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await this.#writing
    await this.#flushing
    await handle?.close()
  }

  /** All bytes, unless a file has them. In a buffer of their own: posting a view to a thread copies its whole buffer. */
  take(): Uint8Array | undefined {
    if (this.#isCreated) return undefined
    const bytes = new Uint8Array(this.#size)
    let at = 0
    for (const chunk of this.#chunks.splice(0)) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    return bytes
  }

  release(): void {
    this.#hold(-this.#heldBytes)
  }

  async #open(): Promise<FileHandle> {
    if (this.#handle) return this.#handle
    const { file, resumeAt } = this.#options
    const flags = resumeAt === undefined ? 'wx+' : 'a'
    const handle = await open(file, flags, blobMode)
    this.#handle = handle
    this.#isCreated = true
    if (resumeAt === undefined) return handle
    if (resumeAt === 0) await fsyncDirectory(dirname(file))
    const { size } = await handle.stat()
    if (size < resumeAt) throw new BytesLost()
    if (size > resumeAt) await handle.truncate(resumeAt)
    return handle
  }

  async remove(): Promise<void> {
    await this.close()
    this.release()
    if (this.#isCreated) await rm(this.#options.file, { force: true })
  }

  // Joins small chunks: a buffer of one byte takes some 250, which nothing counts.
  #queue(chunk: Buffer) {
    const last = this.#chunks.at(-1)
    const length = (last?.length ?? 0) + chunk.length
    if (!last || length > joinedBytes) return void this.#chunks.push(chunk)
    if (this.#joined?.buffer !== last.buffer) {
      this.#joined = Buffer.allocUnsafeSlow(joinedBytes)
      last.copy(this.#joined)
    }
    chunk.copy(this.#joined, last.length)
    this.#chunks[this.#chunks.length - 1] = this.#joined.subarray(0, length)
  }

  // Chained to the previous batch: a flush may start one at any time.
  #startWriting(handle: FileHandle) {
    const batch = this.#chunks.splice(0)
    this.#batchBytes = 0
    const length = batch.reduce((sum, chunk) => sum + chunk.length, 0)
    this.#writing = this.#writing
      .then(() => this.#writeBatch(handle, batch, length))
      .catch((error) => this.#fail(error))
      .finally(() => this.#hold(-length))
  }

  // Makes room first: if a blob filled the disk, the databases could not even record removals.
  async #writeBatch(handle: FileHandle, batch: Buffer[], length: number) {
    if (length === 0) return
    await this.#options.memory.demandRoom()
    const { bytesWritten } = await handle.writev(batch)
    // writev may write fewer bytes than requested.
    if (bytesWritten < length) await writeWhole(handle, Buffer.concat(batch).subarray(bytesWritten))
    for (const chunk of batch) free(chunk)
  }

  // Flushes while bytes still arrive, so that the last flush is short.
  async #startFlushing(handle: FileHandle) {
    await this.#flushing
    const size = this.#size
    this.#flushedBytes = size
    this.#flushing = this.#writing
      .then(() => handle.datasync())
      .then(() => (this.#failure === undefined ? this.#options.onFlushed?.(size) : undefined))
      .catch((error) => this.#fail(error))
  }

  #demandNoFailure() {
    if (this.#failure) throw this.#failure
  }

  // Keeps the first error: the kernel reports each failed write-back once, so the last fsync may succeed.
  #fail(error: unknown) {
    this.#failure ??= error
  }

  #hold(bytes: number) {
    this.#heldBytes += bytes
    this.#options.memory.add(bytes)
  }
}

// Two batches are in memory: one that is written, and one that arrives.
const batchBytes = 1_048_576

const joinedBytes = 4096

const defaultStagingBytes = 33_554_432

// At once: otherwise some 50 MiB of written chunks wait for the next collection. Smaller ones share their buffers.
function free({ buffer, length }: Buffer) {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0)
}

export async function writeWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten
}
