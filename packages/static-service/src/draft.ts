import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { insufficientStorage } from './errors.ts'
import { headLength } from './kind.ts'

/** A content that the store has: 64 hex digits and the number of its bytes. */
export interface Blob {
  digest: string
  size: number
}

/** A proxy that sends files reads them by their group (docs/proxy.md); nobody comes that far whom the data folder keeps out. */
export const blobMode = 0o640

/** Moves a flushed file to its digest, durably, and holds it there until the function that it returns is called. */
export type Publish = (file: string, digest: string) => Promise<() => void>

/**
 * Bytes that are arriving. They are hashed as they come and lie beside the stored ones; when the block that made the
 * draft ends, they are removed unless they were kept and something refers to them by then.
 */
export class Draft implements AsyncDisposable {
  readonly #file: string
  readonly #handle: FileHandle
  readonly #publish: Publish
  readonly #hash = createHash('sha256')
  readonly #head: Buffer[] = []
  #size = 0
  #isOpen = true
  #letGo: (() => void) | undefined

  static async open(file: string, publish: Publish): Promise<Draft> {
    return new Draft(file, await open(file, 'wx', blobMode).catch(nameFullDisk), publish)
  }

  private constructor(file: string, handle: FileHandle, publish: Publish) {
    this.#file = file
    this.#handle = handle
    this.#publish = publish
  }

  get size(): number {
    return this.#size
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
    await writeWhole(this.#handle, chunk).catch(nameFullDisk)
  }

  /** Flushes the bytes: no more are coming. */
  async seal(): Promise<void> {
    await this.#handle.sync().catch(nameFullDisk)
    await this.#close()
  }

  /**
   * Makes the sealed bytes durable under their digest, and safe from collection until the block ends.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<Blob> {
    const digest = this.#hash.digest('hex')
    this.#letGo = await this.#publish(this.#file, digest).catch(nameFullDisk)
    return { digest, size: this.#size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
    if (this.#letGo) this.#letGo()
    else await rm(this.#file, { force: true })
  }

  async #close() {
    if (!this.#isOpen) return
    this.#isOpen = false
    await this.#handle.close()
  }
}

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
