import { readFile } from 'node:fs/promises'
import { BytesLost } from '../errors.ts'
import { maxSmallBytes } from './blob-path.ts'
import { openFile } from './blob-reader.ts'
import { ContentHash, hashBlob, type StoredBlob } from './integrity.ts'
import { StagingFile, type StagingMemory } from './staging-file.ts'

/** `isReferenced`: a file has referred to the blob since. */
type EndLease = (isReferenced: boolean) => void

interface StagedBlobOptions {
  file: string
  /** Hash of a file that earlier requests completed and flushed. */
  arrived?: ContentHash | undefined
  /** Whether the file itself becomes the blob: then it is fsynced before the blob counts as durable. */
  isFlushed: boolean
  memory: StagingMemory
  /**
   * Makes a blob durable under its digest and leases it until the returned function is called. `from`: the bytes of a
   * small one, or the flushed file of another.
   */
  store: (blob: StoredBlob, from: Uint8Array | string) => Promise<EndLease>
}

/**
 * A blob that is arriving: hashed as it comes, held in memory while it is small, else in a file of `tmp`. Disposing of
 * it removes its bytes unless they were published and a file refers to them by then.
 */
export class StagedBlob implements AsyncDisposable {
  readonly #options: StagedBlobOptions
  readonly #file: StagingFile
  #hash: ContentHash | undefined
  #isPublished = false
  #storing: Promise<EndLease> | undefined
  #isReferenced = false

  constructor(options: StagedBlobOptions) {
    const { file, memory, isFlushed, arrived } = options
    this.#options = options
    memory.arriving.add(this)
    this.#hash = arrived ?? new ContentHash()
    this.#file = new StagingFile({
      ...{ file, memory, resumeAt: arrived?.size },
      flushBytes: isFlushed ? flushBytes : undefined,
    })
  }

  /** Hash of the bytes so far; undefined after `keep`. */
  get hash(): ContentHash | undefined {
    return this.#hash
  }

  get size(): number {
    return this.#file.size
  }

  get head(): Buffer {
    return this.#hash?.head ?? Buffer.alloc(0)
  }

  /** Takes over the chunk, as `StagingFile.write` does. @throws {HttpError} `insufficient_storage` when the disk is full. */
  write(chunk: Buffer): Promise<void> {
    this.#hash?.update(chunk)
    return this.#file.write(chunk)
  }

  /** Ends the blob and flushes its file. @throws {HttpError} `insufficient_storage` when the disk is full. */
  async seal(): Promise<void> {
    const isSmall = this.size <= maxSmallBytes
    if (isSmall && !this.#file.isOpen) return
    if (this.#options.isFlushed && !isSmall) await this.#file.flush()
    else await this.#file.settle()
    await this.#file.close()
  }

  /** Ends the blob, writes it to a file and returns the path. @throws {HttpError} as `seal`. */
  async spool(): Promise<string> {
    await this.#file.settle()
    await this.#file.close()
    return this.#options.file
  }

  /**
   * Makes the sealed blob durable under its digest. Leases it until this is disposed of, so that it is not collected
   * before a file can refer to it.
   * @throws {HttpError} `insufficient_storage` when the disk is full.
   */
  async keep(): Promise<StoredBlob> {
    const { file, store, isFlushed } = this.#options
    const blob = { digest: this.#hash?.digest ?? '', size: this.size }
    const isSmall = blob.size <= maxSmallBytes
    this.#hash = undefined
    const from = isSmall ? (this.#file.take() ?? (await readFile(file))) : file
    this.#storing = store(blob, from)
    await this.#storing
    this.#isPublished = !isSmall
    // A folder store has the bytes on disk now; S3 keeps small blobs in memory until a file refers to them.
    if (isFlushed) this.#file.release()
    return blob
  }

  /** Call once a file refers to the blob, even if the file is removed later. */
  markReferenced(): void {
    this.#isReferenced = true
  }

  // Ignores errors: they would hide the result of the request. The next start removes files that remain.
  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.memory.arriving.delete(this)
    await this.#file.close().catch(() => undefined)
    // Another blob of the request may have failed while this one was being stored.
    const release = await this.#storing?.catch(() => undefined)
    release?.(this.#isReferenced)
    if (this.#isPublished) this.#file.release()
    else await this.#file.remove().catch(() => undefined)
  }
}

// Large enough that no flush waits for the one before.
const flushBytes = 33_554_432

/**
 * A blob that arrives in several requests: a file in `uploads`, of which the staged size is saved. `stage` stages the
 * complete file and keeps it.
 */
export function resumableFile(
  staging: StagingFile,
  stage: (file: string, arrived: ContentHash) => Promise<StagedBlob>,
) {
  const { file } = staging
  let { size: saved } = staging
  return {
    write: (chunk: Buffer) => staging.write(chunk),

    async save() {
      if (staging.size === saved) return {}
      await staging.flush()
      saved = staging.size
      return { size: saved }
    },

    async stage(hash: ContentHash | undefined) {
      await staging.settle() // Creates the file of an empty upload.
      await using blob = await openFile(file)
      if (blob?.size !== staging.size) throw new BytesLost()
      return stage(file, hash ?? (await hashBlob(blob)))
    },

    async [Symbol.asyncDispose]() {
      await staging.close()
      staging.release()
    },
  }
}
