import { link } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { BytesLost } from '../../errors.ts'
import { throwStorageFailure } from '../../sqlite/storage-failure.ts'
import { openFile } from '../blob-reader.ts'
import type { ResumableBlob, SavedBlob } from '../blob-store.ts'
import type { ContentHash } from '../hashing.ts'
import { hashBlob } from '../integrity.ts'
import type { StagedBlob } from '../staged-blob.ts'
import { StagingFile, type StagingMemory } from '../staging-file.ts'

interface Dependencies {
  memory: StagingMemory
  newTmpFile: () => string
  /** @throws {HttpError} `insufficient_storage` where only the room of the databases is left. */
  demandSpace: () => Promise<void>
  stage: (file: string, arrived: ContentHash) => StagedBlob
}

/** A content that arrives in several requests: a file of `uploads`, of which so many bytes are saved. */
export class ResumableFile implements ResumableBlob {
  readonly #dependencies: Dependencies
  readonly #file: StagingFile
  #isListed: boolean

  constructor(file: string, size: number, dependencies: Dependencies) {
    this.#dependencies = dependencies
    this.#file = new StagingFile({ file, memory: dependencies.memory, resumeAt: size })
    this.#isListed = size > 0
  }

  write(chunk: Buffer): Promise<void> {
    return this.#file.write(chunk)
  }

  // It stays for hours, so it leaves the databases their room.
  async save(): Promise<SavedBlob> {
    const { size, file } = this.#file
    await this.#dependencies.demandSpace()
    await this.#file.flush()
    if (!this.#isListed) await fsyncDirectory(dirname(file))
    this.#isListed = true
    return { size, state: null, tail: null }
  }

  // A second link becomes the content: after a crash before the catalog's commit the bytes are still here. From now on
  // nothing is written to the file.
  async stage(hash: ContentHash | undefined): Promise<StagedBlob> {
    const { newTmpFile, stage } = this.#dependencies
    const { file, size } = this.#file
    await using blob = await openFile(file, () => undefined)
    if (blob?.size !== size) throw new BytesLost()
    const arrived = hash ?? (await hashBlob(blob))
    const tmpFile = newTmpFile()
    await link(file, tmpFile).catch(throwStorageFailure)
    return stage(tmpFile, arrived)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
    this.#file.release()
  }
}
