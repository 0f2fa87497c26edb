import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { insufficientStorage } from '../errors.ts'
import { headLength } from '../files/media-type.ts'
import { blobMode } from './blob-path.ts'

/** A content: 64 hex digits and the number of its bytes. */
export interface StoredBlob {
  digest: string
  size: number
  /** All of it, where the store has not got it yet: to be handed to the catalog. */
  bytes?: Uint8Array
}

interface DraftParts {
  /** Where the bytes lie that are not kept in memory. */
  file: string
  /** How many bytes may be kept in memory. */
  room: number
  /** Moves a flushed file to its digest, durably, and holds it there until the function that it returns is called. */
  publish: (file: string, digest: string) => Promise<() => void>
  /** Holds what will come to lie at a digest, likewise. */
  hold: (digest: string) => Promise<() => void>
  /** Told when the block ends. */
  onEnd: () => void
}

/**
 * Bytes that are arriving. They are hashed as they come; few stay in memory, more lie beside the stored ones. When the
 * block that made the draft ends, they are removed unless they were kept and something refers to them by then.
 */
export class StagedBlob implements AsyncDisposable {
  readonly #parts: DraftParts
  readonly #hash = createHash('sha256')
  readonly #head: Buffer[] = []
  #inMemory: Buffer[] = []
  #handle: FileHandle | undefined
  #isOnDisk = false
  #flushing: Promise<void> | undefined
  #failure: unknown
  #unflushed = 0
  #size = 0
  #letGo: (() => void) | undefined

  constructor(parts: DraftParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#size
  }

  /** Whether all of it is in memory. */
  get isSmall(): boolean {
    return this.#parts.room > 0 && this.#size <= this.#parts.room
  }

  /** The first bytes, as many as it takes to tell what they are. */
  get head(): Buffer {
    return Buffer.concat(this.#head).subarray(0, headLength)
  }

  /** @throws {HttpError} `insufficient_storage` when the disk is full. */
  async write(chunk: Buffer): Promise<void> {
    if (this.#size < headLength) this.#head.push(Buffer.from(chunk.subarray(0, headLength)))
    this.#hash.update(chunk)
    this.#size += chunk.length
    if (this.isSmall) this.#inMemory.push(chunk)
    else await this.#writeOut(chunk).catch(nameFullDisk)
  }

  /** Flushes the bytes: no more are coming. */
  async seal(): Promise<void> {
    if (this.isSmall) return
    await this.#seal().catch(nameFullDisk)
  }

  /**
   * Makes the sealed bytes durable under their digest, or hands them over, where they are few; and keeps them safe from
   * collection until the block ends.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<StoredBlob> {
    const { file, publish, hold } = this.#parts
    const digest = this.#hash.digest('hex')
    const holding = this.isSmall ? hold(digest) : publish(file, digest)
    this.#letGo = await holding.catch(nameFullDisk)
    const blob = { digest, size: this.#size }
    return this.isSmall ? { ...blob, bytes: this.#takeBytes() } : blob
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#parts.onEnd()
    await this.#close()
    if (this.#letGo) this.#letGo()
    else if (this.#isOnDisk) await rm(this.#parts.file, { force: true })
  }

  // Large contents are flushed while they come, so that at the end little is left to wait for.
  async #writeOut(chunk: Buffer) {
    this.#handle ??= await this.#open()
    for (const kept of this.#inMemory.splice(0)) await writeWhole(this.#handle, kept)
    await writeWhole(this.#handle, chunk)
    this.#unflushed += chunk.length
    if (this.#failure) throw this.#failure
    if (this.#flushing || this.#unflushed < flushLength) return
    this.#unflushed = 0
    this.#flushing = this.#flush(this.#handle)
  }

  // The system tells of a failure once: it is remembered, since the last flush might succeed.
  async #flush(handle: FileHandle) {
    await handle.datasync().catch((error) => {
      this.#failure = error
    })
    this.#flushing = undefined
  }

  async #open() {
    const handle = await open(this.#parts.file, 'wx', blobMode)
    this.#isOnDisk = true
    return handle
  }

  async #seal() {
    this.#handle ??= await this.#open() // So it is with an empty one that may not stay in memory.
    await this.#flushing
    if (this.#failure) throw this.#failure
    await this.#handle.sync()
    await this.#close()
  }

  // In memory of their own: what is handed to another thread is copied with all that it lies in.
  #takeBytes(): Uint8Array {
    const bytes = new Uint8Array(this.#size)
    let at = 0
    for (const chunk of this.#inMemory.splice(0)) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    return bytes
  }

  async #close() {
    const handle = this.#handle
    this.#handle = undefined
    await this.#flushing
    await handle?.close()
  }
}

// Large enough that no flush waits for another.
const flushLength = 33_554_432

/** Writes all of the bytes: one call may take fewer than it was given. */
export async function writeWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at)
    at += bytesWritten
  }
}

/** Throws a failure of the disk again, by the name that callers know when it is full. */
export function nameFullDisk(error: unknown): never {
  const isFull =
    error instanceof Error && 'code' in error && /^(?:ENOSPC|EDQUOT)$/.test(String(error.code))
  throw isFull ? insufficientStorage(error) : error
}
