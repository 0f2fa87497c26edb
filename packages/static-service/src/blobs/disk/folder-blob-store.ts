import { randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDirectory, DataDirError } from '@domains-and-files/persistence'
import { throwStorageFailure } from '../../sqlite/storage-failure.ts'
import {
  type CompressedCoding,
  type ContentCoding,
  encodedForms,
  maxSmallBytes,
} from '../blob-path.ts'
import { type OpenBlob, openBytes } from '../blob-reader.ts'
import type { BlobStore, ResumableBlob, SavedBlob, StoredEntry } from '../blob-store.ts'
import type { VerifiedContents } from '../integrity.ts'
import { StagedBlob, type StoredBlob } from '../staged-blob.ts'
import { StagingMemory } from '../staging-file.ts'
import { blobDatabaseName } from './blob-database.ts'
import { DiskSpace } from './disk-space.ts'
import { BlobLeases, Garbage } from './garbage.ts'
import { DurableDirectories, LargeBlobs, listFiles, listShards } from './large-blobs.ts'
import { ResumableFile } from './resumable-file.ts'
import { SmallBlobs } from './small-blobs.ts'

export interface FolderBlobStoreOptions {
  /** Whether any file refers to this digest; contents without a reference are collected. */
  isReferenced: (digest: string) => Promise<boolean>
  /** Bytes that are kept only for the history. */
  pastBytes?: () => number
  /** Drops the oldest history, up to so many bytes; returns how many files that were: 0: there is no history. */
  dropPast?: (bytes: number) => Promise<number>
  /** Whether a backup is running: nothing is removed meanwhile. */
  isBackedUp?: () => boolean
  /** Further databases in the data directory, whose write-ahead logs are truncated when space is short. */
  otherDatabases?: string[]
  /** Bytes that arriving contents hold in memory, above which they go to their files as they come. Default: 32 MiB. */
  maxStagingBytes?: number
  /** Called when contents could not be removed, which are tried again, at the latest by the next start. */
  onError: (error: unknown) => void
}

/**
 * Contents by their SHA-256 digest, each stored once: up to 32 KiB in the content database, larger ones as files below
 * `blobs`. No name that a client chose becomes a path here.
 */
export class FolderBlobStore implements BlobStore {
  readonly small: SmallBlobs
  readonly #dataDir: string
  readonly #large: LargeBlobs
  readonly #options: FolderBlobStoreOptions
  readonly #space: DiskSpace
  readonly #garbage: Garbage
  readonly #staged = new Set<string>()
  readonly #memory: StagingMemory
  readonly #leases = new BlobLeases((digest) => this.collect([digest]))

  /** Creates what is missing and removes the staged contents of an earlier process. */
  static async open(dataDir: string, options: FolderBlobStoreOptions): Promise<FolderBlobStore> {
    await createDirectory(dataDir)
    const directories = new DurableDirectories(dataDir)
    await directories.ensure('blobs')
    await directories.ensure('uploads')
    const tmp = await directories.ensure('tmp')
    for (const name of await readdir(tmp)) await rm(join(tmp, name), { recursive: true })
    await demandRename(dataDir)
    return new FolderBlobStore(dataDir, directories, options)
  }

  /** For maintenance beside a running service: changes nothing. */
  static openReader(dataDir: string): FolderBlobStore {
    const options = { isReferenced: async () => true, onError: () => undefined, isReadOnly: true }
    return new FolderBlobStore(dataDir, new DurableDirectories(dataDir), options)
  }

  private constructor(
    dataDir: string,
    directories: DurableDirectories,
    options: FolderBlobStoreOptions & { isReadOnly?: boolean },
  ) {
    this.#dataDir = dataDir
    this.#options = options
    this.#memory = new StagingMemory(options.maxStagingBytes, (bytes) => this.#makeRoom(bytes))
    this.small = new SmallBlobs(dataDir, options)
    this.#space = new DiskSpace({
      dataDir,
      small: this.small,
      otherDatabases: options.otherDatabases ?? [],
      pastBytes: options.pastBytes ?? (() => 0),
      onError: options.onError,
    })
    this.#garbage = new Garbage({
      remove: (digest) => this.#leases.whileFree(digest, () => this.#remove(digest)),
      onError: options.onError,
    })
    this.#large = new LargeBlobs(dataDir, directories, this.small)
  }

  get verified(): VerifiedContents {
    return this.small
  }

  draft(memoryBytes = maxSmallBytes): StagedBlob {
    const file = this.#newTmpFile()
    this.#staged.add(file)
    return new StagedBlob({
      file,
      isFlushed: true,
      memoryBytes: Math.min(memoryBytes, maxSmallBytes),
      memory: this.#memory,
      storeSmall: (digest, bytes) => this.#storeSmall(digest, bytes),
      storeFile: (file, blob) => this.#storeFile(file, blob),
      onEnd: () => this.#staged.delete(file),
    })
  }

  resume(id: string, { size }: SavedBlob): ResumableBlob {
    return new ResumableFile({
      file: join(this.#dataDir, 'uploads', id),
      size,
      memory: this.#memory,
      newTmpFile: () => this.#newTmpFile(),
      demandSpace: () => this.#demand(() => this.#space.demandForFile()),
      storeSmall: (digest, bytes) => this.#storeSmall(digest, bytes),
      storeFile: (file, blob) => this.#storeFile(file, blob),
    })
  }

  async discard(id: string): Promise<void> {
    await rm(join(this.#dataDir, 'uploads', id), { force: true })
  }

  /** Removes what is saved under other ids than these. */
  async discardOthers(ids: Set<string>): Promise<void> {
    for (const id of await readdir(join(this.#dataDir, 'uploads')))
      if (!ids.has(id)) await this.discard(id)
  }

  #storeSmall(digest: string, bytes: Uint8Array): Promise<() => void> {
    return this.#leaseStored(digest, async () => {
      await this.#demand(() => this.#space.demandForRow())
      return this.small.store(digest, 'identity', bytes)
    })
  }

  #storeFile(file: string, blob: StoredBlob): Promise<() => void> {
    return this.#leaseStored(blob.digest, async () => {
      await this.#demand(() => this.#space.demandForFile())
      return this.#large.publish(file, blob)
    })
  }

  // Room that only the history takes is room: the oldest goes first.
  async #demand(check: () => void) {
    try {
      check()
    } catch (error) {
      if (!(await this.#makeRoom(0))) throw error
    }
  }

  async #makeRoom(bytes: number): Promise<boolean> {
    const { dropPast, isBackedUp } = this.#options
    for (;;) {
      // A backup keeps what is dropped on the disk.
      const dropped = isBackedUp?.() ? 0 : await dropPast?.(this.#space.shortBy(bytes))
      await this.#garbage.settle()
      if (this.#space.shortBy(bytes) === 0) return true
      if (!dropped) return false
      await this.#space.giveBack()
    }
  }

  async open(digest: string, coding: ContentCoding = 'identity'): Promise<OpenBlob | undefined> {
    const bytes = this.small.read(digest, coding)
    if (bytes) return openBytes(bytes)
    const release = await this.#leases.acquire(digest)
    try {
      const opened = await this.#large.open(digest, coding, release)
      if (!opened) release()
      return opened
    } catch (error) {
      release()
      throw error
    }
  }

  readNow(digest: string): Buffer | undefined {
    return this.small.read(digest, 'identity')
  }

  async putForm(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void> {
    const release = await this.#leases.acquire(digest)
    try {
      if ((await this.formSize(digest, 'identity')) === undefined) return
      this.#space.demandForFile()
      if (bytes.length <= maxSmallBytes) await this.small.store(digest, coding, bytes)
      else await this.#large.writeForm({ digest, coding, tmpFile: this.#newTmpFile() }, bytes)
    } catch (error) {
      throwStorageFailure(error)
    } finally {
      release()
    }
  }

  async dropForm(digest: string, coding: CompressedCoding): Promise<void> {
    if (await this.small.remove(digest, coding)) return
    await this.#large.removeForm(digest, coding)
  }

  async forms(digest: string): Promise<CompressedCoding[]> {
    const stored: CompressedCoding[] = []
    for (const coding of encodedForms) {
      if ((await this.formSize(digest, coding)) !== undefined) stored.push(coding)
    }
    return stored
  }

  async formSize(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return this.small.sizeOf(digest, coding) ?? this.#large.sizeOf(digest, coding)
  }

  /** Removes in the background those of these contents that no file refers to, each once it is not leased. */
  collect(digests: string[]): void {
    this.#garbage.collect(digests)
  }

  /** The first two hex digits of the digests of all that is stored. */
  async prefixes(): Promise<Set<string>> {
    return new Set([...(await this.small.prefixes()), ...(await listShards(this.#dataDir))])
  }

  async list(prefix: string): Promise<StoredEntry[]> {
    const rows = await this.small.digests(prefix)
    const nameOf = (digest: string) => `${blobDatabaseName}/${digest}`
    return [
      ...(await listFiles(this.#dataDir, prefix)),
      ...rows.map((digest) => ({ name: nameOf(digest), digest })),
    ]
  }

  async removeEntries(entries: StoredEntry[]): Promise<void> {
    for (const { name, digest } of entries) {
      if (digest && name.startsWith(blobDatabaseName)) await this.small.remove(digest)
      else await rm(join(this.#dataDir, name), { recursive: true, force: true })
    }
  }

  async findFaults(): Promise<{ path: string; fault: string }[]> {
    const fault = this.small.findFault()
    return fault ? [{ path: 'the content database', fault }] : []
  }

  /** Resolves when no removal is running. */
  async settle(): Promise<void> {
    await this.#garbage.settle()
  }

  async close(): Promise<void> {
    await this.#garbage.close()
    await this.#space.close()
    await this.small.close()
  }

  /** Whether the disk can be written to, and has the free space that deleting needs: one system call. */
  check(): { disk: { status: 'ok' | 'degraded' | 'unavailable' } } {
    return { disk: { status: this.#checkDisk() } }
  }

  /** Contents that are being read or stored. */
  get busy(): number {
    return this.#leases.count
  }

  /** Contents that are arriving, in memory or in `tmp`, and large compressed forms that are being written there. */
  async countDrafts(): Promise<number> {
    const { length } = await readdir(join(this.#dataDir, 'tmp'))
    return Math.max(length, this.#staged.size)
  }

  #checkDisk() {
    try {
      this.small.check()
      accessSync(join(this.#dataDir, 'tmp'), constants.W_OK)
      return this.#space.isShort ? ('degraded' as const) : ('ok' as const)
    } catch {
      return 'unavailable' as const
    }
  }

  // Leased until the returned function is called, which collects the content if no file refers to it.
  async #leaseStored(digest: string, store: () => Promise<void>): Promise<() => void> {
    const release = await this.#leases.acquire(digest)
    const end = () => {
      release()
      this.collect([digest])
    }
    try {
      await store()
      return end
    } catch (error) {
      end()
      throw error
    }
  }

  // Whether it is done: false to be tried again.
  async #remove(digest: string): Promise<boolean> {
    if (await this.#options.isReferenced(digest)) return true
    // Checked after the references, never before: backUp() relies on this order.
    if (this.#options.isBackedUp?.()) return false
    if (!(await this.#removeRows(digest))) await this.#large.remove(digest)
    this.#space.reclaim()
    return true
  }

  async #removeRows(digest: string): Promise<boolean> {
    try {
      return await this.small.remove(digest)
    } catch {
      // On a full disk, a file that is unlinked makes the room that the database needs.
      await this.#large.remove(digest)
      return this.small.remove(digest)
    }
  }

  #newTmpFile() {
    return join(this.#dataDir, 'tmp', randomUUID())
  }
}

// Tried, not compared by device number: renames fail between two mounts of one device as well.
async function demandRename(dataDir: string) {
  const names = ['tmp', 'blobs'].map((name) => join(dataDir, name, 'rename-test'))
  const [from = '', to = ''] = names
  try {
    await writeFile(from, '')
    await rename(from, to)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    if (code === 'EXDEV') throw new DataDirError(separateFileSystems(dataDir))
    // A full disk is no reason to refuse the start: files are served, and can be deleted.
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
  } finally {
    for (const name of names) await rm(name, { force: true })
  }
}

const separateFileSystems = (dataDir: string) =>
  `Cannot start: blobs and tmp in ${dataDir} are on different file systems: put all of DATA_DIR on one.`
