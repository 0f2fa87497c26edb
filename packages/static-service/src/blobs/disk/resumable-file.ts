import { createReadStream } from 'node:fs'
import { link, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { throwStorageFailure } from '../../sqlite/storage-failure.ts'
import { maxSmallBytes } from '../blob-path.ts'
import type { ResumableBlob, SavedBlob } from '../blob-store.ts'
import type { StoredBlob } from '../staged-blob.ts'
import { StagingFile, type StagingMemory } from '../staging-file.ts'

interface ResumableFileOptions {
  file: string
  /** Bytes of it that are saved. */
  size: number
  memory: StagingMemory
  newTmpFile: () => string
  /** @throws {HttpError} `insufficient_storage` where only the room of the databases is left. */
  demandSpace: () => Promise<void>
  /** As those of a staged blob. */
  storeSmall: (digest: string, bytes: Uint8Array) => Promise<() => void>
  storeFile: (file: string, blob: StoredBlob) => Promise<() => void>
}

/** A content that arrives in several requests: a file of `uploads`. */
export class ResumableFile implements ResumableBlob {
  readonly #options: ResumableFileOptions
  readonly #staging: StagingFile
  #isListed: boolean
  #release: (() => void) | undefined

  constructor(options: ResumableFileOptions) {
    const { file, memory, size } = options
    this.#options = options
    this.#staging = new StagingFile({ file, memory, resumeAt: size })
    this.#isListed = size > 0
  }

  write(chunk: Buffer): Promise<void> {
    return this.#staging.write(chunk)
  }

  async seal(): Promise<SavedBlob> {
    return { size: this.#staging.size, state: null, tail: null }
  }

  // It stays for hours, so it leaves the databases their room.
  async save(): Promise<SavedBlob> {
    const { size } = this.#staging
    await this.#options.demandSpace()
    await this.#staging.flush()
    if (!this.#isListed) await fsyncDirectory(dirname(this.#options.file))
    this.#isListed = true
    return { size, state: null, tail: null }
  }

  read(): AsyncIterable<Buffer> {
    return createReadStream(this.#options.file, { highWaterMark: pieceBytes })
  }

  // A second link becomes the content: after a crash before the catalog's commit the bytes are still here. From now on
  // nothing is written to the file.
  async keep(digest: string): Promise<StoredBlob> {
    const { file, newTmpFile, storeSmall, storeFile } = this.#options
    const blob = { digest, size: this.#staging.size }
    if (blob.size <= maxSmallBytes) {
      this.#release = await storeSmall(digest, await readFile(file)).catch(throwStorageFailure)
      return blob
    }
    const tmpFile = newTmpFile()
    try {
      await link(file, tmpFile)
      this.#release = await storeFile(tmpFile, blob)
    } catch (error) {
      await rm(tmpFile, { force: true })
      throwStorageFailure(error)
    }
    return blob
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#staging.close()
    this.#staging.release()
    this.#release?.()
  }
}

const pieceBytes = 1_048_576
