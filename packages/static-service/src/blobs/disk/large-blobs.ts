import { open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { type OpenBlob, openFile, stampOf } from '../blob-reader.ts'
import { blobMode, blobPathOf, type ContentCoding, encodedForms } from '../blob-store.ts'
import { hashBlob, type StoredBlob, type VerifiedContents } from '../integrity.ts'
import { writeWhole } from '../staging-file.ts'
import type { DurableDirectories } from './data-directories.ts'

type Proofs = Pick<VerifiedContents, 'recordVerified'>

/** Blobs and compressed forms of more than 32 KiB: files below `blobs`, named by digest. */
export class LargeBlobs {
  readonly #dataDir: string
  readonly #directories: DurableDirectories
  readonly #proofs: Proofs

  constructor(dataDir: string, directories: DurableDirectories, proofs: Proofs) {
    this.#dataDir = dataDir
    this.#directories = directories
    this.#proofs = proofs
  }

  /** `onClose` is called once the file has been closed, and not if there is none. */
  open(digest: string, coding: ContentCoding, onClose?: () => void): Promise<OpenBlob | undefined> {
    return openFile(this.#fileOf(digest, coding), onClose)
  }

  async sizeOf(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return (await stat(this.#fileOf(digest, coding), { throwIfNoEntry: false }))?.size
  }

  /**
   * Durably publishes a flushed file under its digest. Keeps an existing intact file, on which stored files depend, and
   * replaces a damaged one.
   */
  async publish(file: string, blob: StoredBlob): Promise<void> {
    const isSound = await this.#isSound(blob)
    if (isSound) await rm(file)
    await this.#place(isSound ? undefined : file, blob.digest, 'identity')
  }

  /** Stores a compressed form durably, by way of `tmpFile`, which must not exist. */
  async writeForm(
    { digest, coding, tmpFile }: { digest: string; coding: ContentCoding; tmpFile: string },
    bytes: Buffer,
  ): Promise<void> {
    try {
      {
        await using handle = await open(tmpFile, 'wx', blobMode)
        await writeWhole(handle, bytes)
        await handle.sync()
      }
      await this.#place(tmpFile, digest, coding)
    } catch (error) {
      await rm(tmpFile, { force: true })
      throw error
    }
  }

  async removeForm(digest: string, coding: ContentCoding): Promise<void> {
    await rm(this.#fileOf(digest, coding), { force: true })
  }

  async remove(digest: string): Promise<void> {
    for (const coding of encodedForms) await this.removeForm(digest, coding)
    await this.removeForm(digest, 'identity')
  }

  async #isSound({ digest, size }: StoredBlob): Promise<boolean> {
    await using stored = await this.open(digest, 'identity')
    return stored?.size === size && (await hashBlob(stored)).digest === digest
  }

  // Fsyncs the directory in any case: a killed process may not have done so. No need to hash the file: its bytes were
  // just hashed, or just made.
  async #place(from: string | undefined, digest: string, coding: ContentCoding) {
    const directory = await this.#directories.ensure('blobs', ...blobPathOf(digest).slice(0, 2))
    const file = this.#fileOf(digest, coding)
    if (from) await rename(from, file)
    await fsyncDirectory(directory)
    const stamp = stampOf(await stat(file, { bigint: true }))
    this.#proofs.recordVerified({ digest, coding, stamp })
  }

  #fileOf(digest: string, coding: ContentCoding) {
    return join(this.#dataDir, 'blobs', ...blobPathOf(digest, coding))
  }
}
