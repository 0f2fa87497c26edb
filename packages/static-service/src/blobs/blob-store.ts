import { randomUUID } from 'node:crypto'
import { accessSync, constants, statfsSync } from 'node:fs'
import { open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { createDirectory, fsyncDirectory } from '@domains-and-files/persistence'
import { insufficientStorage } from '../errors.ts'
import { BlobLeases } from './blob-leases.ts'
import { blobMode, blobPathOf, type ContentCoding, encodedForms } from './blob-path.ts'
import { openFile } from './blob-reader.ts'
import { DurableDirectories } from './durable-directories.ts'
import { nameFullDisk, StagedBlob, writeWhole } from './staged-blob.ts'

/** A content that is being read; it stays until this is disposed of, whatever is deleted meanwhile. */
export interface OpenBlob extends AsyncDisposable {
  readonly size: number
  /** When the file was last written, renamed or touched, in milliseconds since 1970. Nobody can set it. */
  readonly changed: number
  /** Another one as soon as anything about the file is. */
  readonly stamp: string
  /** Exactly these bytes, or those up to the end; in this memory, where it is given. */
  read(start: number, length: number, into?: Buffer): Promise<Buffer>
}

export interface BlobStoreOptions {
  /** Whether anything refers to this digest: what nothing refers to is collected. */
  isReferenced: (digest: string) => Promise<boolean>
  /** Whether a backup is being made: meanwhile nothing is removed. */
  isBackedUp?: () => boolean
  /** Told when bytes could not be removed; they are found again at the next start. */
  onError: (error: unknown) => void
}

/** Bytes on the disk, each content once, under its digest: no name that a caller chose ever becomes a path here. */
export class BlobStore {
  readonly #dataDir: string
  readonly #folders: DurableDirectories
  readonly #options: BlobStoreOptions
  readonly #reserve: number
  readonly #work = new Set<Promise<void>>()
  readonly #postponed = new Set<string>()
  readonly #drafts = new Set<string>()
  #asking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #pins = new BlobLeases((digest) => this.collect([digest]))

  /** Makes the folders where needed and sweeps the drafts that an earlier process left. */
  static async open(dataDir: string, options: BlobStoreOptions): Promise<BlobStore> {
    await createDirectory(dataDir)
    const folders = new DurableDirectories(dataDir)
    await folders.ensure('blobs')
    const drafts = await folders.ensure('tmp')
    for (const name of await readdir(drafts)) await rm(join(drafts, name), { recursive: true })
    const { blocks, bsize } = await statfs(dataDir)
    return new BlobStore(dataDir, folders, {
      ...options,
      reserve: Math.min(largestReserve, Math.floor((blocks * bsize) / 8)),
    })
  }

  private constructor(
    dataDir: string,
    folders: DurableDirectories,
    { reserve, ...options }: BlobStoreOptions & { reserve: number },
  ) {
    this.#dataDir = dataDir
    this.#folders = folders
    this.#options = options
    this.#reserve = reserve
  }

  /** Somewhere for bytes to arrive, of which so many may stay in memory. */
  draft(room = 0): StagedBlob {
    const file = this.#draftFile()
    this.#drafts.add(file)
    return new StagedBlob({
      file,
      room,
      publish: (file, digest) => this.#publish(file, digest),
      hold: (digest) => this.#expect(digest),
      onEnd: () => this.#drafts.delete(file),
    })
  }

  /** A content, or one of its forms, to read; nothing when it is not there. */
  async open(digest: string, form: ContentCoding = 'identity'): Promise<OpenBlob | undefined> {
    const letGo = await this.#pins.acquire(digest)
    try {
      const opened = await openFile(this.#fileOf(digest, form), letGo)
      if (!opened) letGo()
      return opened
    } catch (error) {
      letGo()
      throw error
    }
  }

  /** Keeps a compressed form beside its content, whole and durable; it goes with it. Nothing to do once that is gone. */
  async putForm(digest: string, form: ContentCoding, bytes: Buffer): Promise<void> {
    const letGo = await this.#pins.acquire(digest)
    const file = this.#draftFile()
    try {
      if (!(await this.has(digest))) return
      const handle = await open(file, 'wx', blobMode)
      try {
        await writeWhole(handle, bytes)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await this.#move(file, digest, form)
    } catch (error) {
      await rm(file, { force: true })
      nameFullDisk(error)
    } finally {
      letGo()
    }
  }

  /** Removes a compressed form that is of no use. */
  async dropForm(digest: string, form: Exclude<ContentCoding, 'identity'>): Promise<void> {
    await rm(this.#fileOf(digest, form), { force: true })
  }

  has(digest: string): Promise<boolean> {
    return this.hasForm(digest, 'identity')
  }

  async hasForm(digest: string, form: ContentCoding): Promise<boolean> {
    return (await this.formSize(digest, form)) !== undefined
  }

  async formSize(digest: string, form: ContentCoding): Promise<number | undefined> {
    const found = await stat(this.#fileOf(digest, form)).catch(absent)
    return found?.size
  }

  /** Removes those of these contents that nothing refers to, in the background: each once nobody reads or adds it. */
  collect(digests: string[]): void {
    for (const digest of digests) {
      const work = this.#pins
        .whileFree(digest, () => this.#remove(digest))
        .catch(this.#options.onError)
      this.#work.add(work)
      void work.finally(() => this.#work.delete(work))
    }
  }

  /** Resolves when no removal is running. */
  async settle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  /** Whether the disk can be written now, and has the room that deleting needs. */
  checkDisk(): 'ok' | 'degraded' | 'unavailable' {
    try {
      accessSync(join(this.#dataDir, 'tmp'), constants.W_OK)
      const { bavail, bsize } = statfsSync(this.#dataDir)
      return bavail * bsize < this.#reserve ? 'degraded' : 'ok'
    } catch {
      return 'unavailable'
    }
  }

  /** How many contents are being read or added. */
  get busy(): number {
    return this.#pins.count
  }

  /** How many contents are arriving: in memory, or beside the stored ones, where compressed forms are made as well. */
  async countDrafts(): Promise<number> {
    const { length } = await readdir(join(this.#dataDir, 'tmp'))
    return Math.max(length, this.#drafts.size)
  }

  async #publish(file: string, digest: string): Promise<() => void> {
    const letGo = await this.#hold(digest)
    try {
      await this.#move(file, digest, 'identity')
    } catch (error) {
      await rm(file, { force: true })
      letGo()
      throw error
    }
    return letGo
  }

  // What somebody else will write.
  async #expect(digest: string): Promise<() => void> {
    await this.#demandRoom()
    return this.#hold(digest)
  }

  // Until it is let go of; then it is collected, if nothing refers to it.
  async #hold(digest: string): Promise<() => void> {
    const letGo = await this.#pins.acquire(digest)
    return () => {
      letGo()
      this.collect([digest])
    }
  }

  // Asked once for all who come meanwhile.
  #demandRoom(): Promise<void> {
    this.#asking ??= this.#askForRoom().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #askForRoom() {
    const { bavail, bsize } = await statfs(this.#dataDir)
    if (bavail * bsize < this.#reserve) throw insufficientStorage()
  }

  // Also over one that is there: it may be damaged, or not yet durable.
  async #move(file: string, digest: string, form: ContentCoding) {
    await this.#demandRoom()
    const folder = await this.#folders.ensure('blobs', digest.slice(0, 2), digest.slice(2, 4))
    await rename(file, this.#fileOf(digest, form))
    await fsyncDirectory(folder)
  }

  async #remove(digest: string) {
    if (await this.#options.isReferenced(digest)) return
    // Asked after the question above, never before it: see `backUp`, which relies on the order.
    if (this.#options.isBackedUp?.()) return this.#postpone(digest)
    for (const form of encodedForms) await rm(this.#fileOf(digest, form), { force: true })
    await rm(this.#fileOf(digest, 'identity'), { force: true })
  }

  #postpone(digest: string) {
    this.#postponed.add(digest)
    // What is still waiting when the process ends is swept at the next start.
    this.#timer ??= setTimeout(() => {
      const digests = [...this.#postponed]
      this.#postponed.clear()
      this.#timer = undefined
      this.collect(digests)
    }, postponement).unref()
  }

  #draftFile() {
    return join(this.#dataDir, 'tmp', randomUUID())
  }

  #fileOf(digest: string, form: ContentCoding) {
    return join(this.#dataDir, 'blobs', ...blobPathOf(digest, form))
  }
}

// Kept free for the database: on a disk that is full to the last byte nothing could be deleted either.
const largestReserve = 16_777_216

const postponement = 1000

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
