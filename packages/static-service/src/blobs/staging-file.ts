import { hash as hashOnce } from 'node:crypto'
import { type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type BlobRef, fsyncDirectory } from '@domains-and-files/persistence'
import { BytesLost } from '../errors.ts'
import { headLength } from '../files/media-type.ts'
import { blobMode, ContentHash, maxSmallBytes } from './stored-blob.ts'

/** The memory that the arriving blobs of a store hold. */
export class StagingMemory {
  readonly arriving = new Set<object>()
  bytes = 0
  readonly #maxBytes: number
  /** Makes room on the disk for all held bytes. @throws {HttpError} `insufficient_storage` */
  demandRoom = async () => {}

  constructor(maxBytes = defaultStagingBytes) {
    this.#maxBytes = maxBytes
  }

  /** Whether to write each chunk at once: partial batches of many slow uploads would fill the memory. */
  get isShort(): boolean {
    return this.bytes > this.#maxBytes
  }
}

interface StagingFileOptions {
  file: string
  memory: StagingMemory
  /** Unflushed bytes that start a flush in the background; undefined: only `settle` does. */
  flushBytes?: number | undefined
  /** Called when so many bytes are durable, after a flush in the background. */
  onFlushed?: (size: number) => Promise<void>
  /** Saved bytes of an earlier request's file, which is truncated to them. Absent: there is no file yet. */
  resumeAt?: number | undefined
  /** Whether to hash what is written to a new file. */
  isHashed?: boolean
}

/**
 * The file of an arriving blob, created once the blob is not small. Write-behind: the next batch arrives while the last
 * one is written. `write` and `settle` throw `insufficient_storage` when the disk is full, and `BytesLost` if the file
 * of an earlier request has become shorter.
 */
export class StagingFile {
  readonly #options: StagingFileOptions
  #chunks: Buffer[] = []
  /** Memory of these chunks. */
  #batchBytes = 0
  #handle: FileHandle | undefined
  #writing: Promise<void> = Promise.resolve()
  #flushing: Promise<void> | undefined
  #failure: unknown
  #flushedBytes: number
  #heldBytes = 0
  readonly file: string
  /** Hash of the bytes so far, if a file has them and `isHashed`. */
  hash: ContentHash | undefined
  /** Bytes written or queued for writing. */
  size: number
  /** Whether a file has the bytes, or some of them. */
  protected isCreated: boolean

  constructor(options: StagingFileOptions) {
    this.#options = options
    this.file = options.file
    this.size = options.resumeAt ?? 0
    this.isCreated = options.resumeAt !== undefined
    this.#flushedBytes = this.size
  }

  /** Takes over the chunk: its memory is freed once it is written, so the caller must not use it again. */
  async write(chunk: Buffer): Promise<void> {
    this.hash?.update(chunk)
    this.#chunks.push(chunk)
    this.size += chunk.length
    this.#batchBytes += chunk.length + chunkOverhead
    this.#hold(chunk.length + chunkOverhead)
    const { memory, flushBytes } = this.#options
    const isSmall = this.size <= maxSmallBytes && !memory.isShort
    const handle = isSmall ? undefined : await this.#open()
    const isFlushDue = flushBytes !== undefined && this.size - this.#flushedBytes > flushBytes
    if (!handle || (this.#batchBytes < batchBytes && !memory.isShort && !isFlushDue)) return
    await this.#writing
    this.#startWriting(handle)
    if (isFlushDue) await this.#startFlushing(handle)
    if (memory.isShort) await this.#writing
    if (this.#failure) throw this.#failure
  }

  /** Writes all queued bytes, and makes them durable if `isFlushed`; writes may continue meanwhile. */
  async settle({ isFlushed = false } = {}): Promise<void> {
    const handle = await this.#open()
    this.#startWriting(handle)
    await this.#writing
    // With the mtime, which is part of the recorded stamp.
    if (isFlushed) await handle.sync().catch((error) => this.#fail(error))
    await this.#flushing
    if (this.#failure) throw this.#failure
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
    if (this.isCreated) return undefined
    return new Uint8Array(Buffer.concat(this.#chunks.splice(0)))
  }

  /** The first bytes, from which a media type can be detected. */
  get head(): Uint8Array {
    return this.hash?.head ?? Buffer.concat(this.#chunks, Math.min(this.size, headLength))
  }

  release(): void {
    this.#hold(-this.#heldBytes)
  }

  async #open(): Promise<FileHandle> {
    if (this.#handle) return this.#handle
    const { file, resumeAt, isHashed } = this.#options
    const handle = await open(file, resumeAt === undefined ? 'wx+' : 'a', blobMode)
    this.#handle = handle
    this.isCreated = true
    if (resumeAt === undefined) {
      if (isHashed) this.hash = new ContentHash(this.#chunks)
      return handle
    }
    if (resumeAt === 0) await fsyncDirectory(dirname(file))
    const { size } = await handle.stat()
    if (size < resumeAt) throw new BytesLost()
    if (size > resumeAt) await handle.truncate(resumeAt)
    return handle
  }

  async remove(): Promise<void> {
    await this.close().catch(() => undefined)
    this.release() // After the last write, which counts its bytes itself.
    if (this.isCreated) await rm(this.file, { force: true })
  }

  // Chained to the previous batch: a flush may start one at any time.
  #startWriting(handle: FileHandle) {
    const batch = this.#chunks.splice(0)
    const held = this.#batchBytes
    this.#batchBytes = 0
    this.#writing = this.#writing
      .then(() => this.#writeBatch(handle, batch))
      .catch((error) => this.#fail(error))
      .finally(() => this.#hold(-held))
  }

  // Makes room first: if a blob filled the disk, the databases could not even record removals.
  async #writeBatch(handle: FileHandle, batch: Buffer[]) {
    const length = batch.reduce((sum, chunk) => sum + chunk.length, 0)
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
    const size = this.size
    this.#flushedBytes = size
    this.#flushing = this.#writing
      .then(() => handle.datasync())
      .then(() => (this.#failure === undefined ? this.#options.onFlushed?.(size) : undefined))
      .catch((error) => this.#fail(error))
  }

  // Keeps the first error: the kernel reports each failed write-back once, so the last fsync may succeed.
  #fail(error: unknown) {
    this.#failure ??= error
  }

  #hold(bytes: number) {
    this.#heldBytes += bytes
    this.#options.memory.bytes += bytes
  }
}

// Two batches are in memory: one that is written, and one that arrives.
const batchBytes = 1_048_576

// Of a chunk: one of a single byte takes some 250.
const chunkOverhead = 256

const defaultStagingBytes = 33_554_432

// At once: otherwise some 50 MiB of written chunks wait for the next collection. Smaller ones share their buffers.
function free({ buffer, length }: Buffer) {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0)
}

interface StagedBlobOptions extends Pick<StagingFileOptions, 'file' | 'memory'> {
  /** Hash of a file that earlier requests completed and flushed. */
  arrived?: ContentHash | undefined
  /** Whether the file itself becomes the blob: then it is fsynced before the blob counts as durable. */
  isFlushed: boolean
  /**
   * Makes a blob durable under its digest and leases it until the returned function is called with whether a file has
   * referred to it since. `from`: the bytes of a small one, or the flushed file of another.
   */
  store: (blob: BlobRef, from: Uint8Array | string) => Promise<(isReferenced: boolean) => void>
}

/**
 * A blob that is arriving: held in memory while it is small, else in a file of `tmp` and hashed as it comes. Disposing of
 * it removes its bytes unless they were published and a file refers to them by then.
 */
export class StagedBlob extends StagingFile implements AsyncDisposable {
  readonly #options: StagedBlobOptions
  #isPublished = false
  #storing: ReturnType<StagedBlobOptions['store']> | undefined
  /** Set once a file refers to the blob, even if the file is removed later. */
  isReferenced = false

  constructor(options: StagedBlobOptions) {
    const { file, memory, isFlushed, arrived } = options
    super({ file, memory, isHashed: true, resumeAt: arrived?.size, flushBytes: isFlushed ? flushBytes : undefined })
    this.hash = arrived
    this.#options = options
    memory.arriving.add(this)
  }

  /** Ends the blob and flushes its file. @throws {HttpError} `insufficient_storage` when the disk is full. */
  async seal(): Promise<void> {
    if (!this.isCreated && this.size <= maxSmallBytes) return
    await this.settle({ isFlushed: this.#options.isFlushed && this.size > maxSmallBytes })
    await this.close()
  }

  /**
   * Makes the sealed blob durable under its digest. Leases it until this is disposed of, so that it is not collected
   * before a file can refer to it.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<BlobRef> {
    const { store, isFlushed } = this.#options
    const { size, hash } = this
    const isSmall = size <= maxSmallBytes
    const bytes = this.take()
    const blob = { digest: hash?.digest ?? hashOnce('sha256', bytes ?? ''), size }
    this.hash = undefined
    this.#storing = store(blob, bytes ?? (isSmall ? await readFile(this.file) : this.file))
    await this.#storing
    this.#isPublished = !isSmall
    // A folder store has the bytes on disk now; S3 keeps small blobs in memory until a file refers to them.
    if (isFlushed) this.release()
    return blob
  }

  // Ignores errors: they would hide the result of the request. The next start removes files that remain.
  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.memory.arriving.delete(this)
    // Another blob of the request may have failed while this one was being stored.
    const release = await this.#storing?.catch(() => undefined)
    release?.(this.isReferenced)
    if (this.#isPublished || !this.isCreated) this.release()
    else await this.remove().catch(() => undefined)
  }
}

/** By `write`, unlike `writeFile`: the tests of failing disks and lost power see its calls. */
export async function writeWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten
}

// Large enough that no flush waits for the one before.
const flushBytes = 33_554_432
