import { randomUUID } from 'node:crypto'
import { link, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BackgroundTask, type BlobRef, type OpenBlob, openBytes } from '@domains-and-files/persistence'
import { type CompressedCoding, type ContentCoding, compressedCodings } from '../../rfc9110/content-codings.ts'
import { type BlobStore, maxUnsavedBytes, type OnSaved, type ResumableBlob, type SavedBlob } from '../blob-store.ts'
import { StagedBlob, StagingFile, StagingMemory } from '../staging-file.ts'
import { type ContentHash, maxSmallBytes, type VerifiedContents } from '../stored-blob.ts'
import { DiskSpace, type RoomOptions } from './disk-space.ts'
import { Garbage } from './garbage.ts'
import { type EnsureDirectory, ensureBelow, LargeBlobs, openDirectories } from './large-blobs.ts'
import { resumableFile } from './resumable-file.ts'
import { SmallBlobs } from './small-blobs.ts'

interface FolderBlobStoreOptions extends RoomOptions {
  /** Whether any file refers to this digest; unreferenced blobs are collected. */
  isReferenced: (digest: string) => Promise<boolean>
  /** Bytes that arriving blobs may hold in memory; above it chunks go to their files at once. Default: 32 MiB. */
  maxStagingBytes?: number
}

/** Blobs up to 32 KiB in the content database, larger ones as files below `blobs`. */
export class FolderBlobStore implements BlobStore {
  readonly holdsSmall = false
  readonly small: SmallBlobs
  readonly verified: VerifiedContents
  readonly #dataDir: string
  readonly #large: LargeBlobs
  readonly #options: FolderBlobStoreOptions
  readonly #space: DiskSpace
  readonly #garbage: Garbage
  readonly memory: StagingMemory
  readonly #leases = new BlobLeases()
  /** Blobs that files refer to and that this store lacked when it was last compared. */
  missing: BlobRef[] = []
  readonly #comparing = new BackgroundTask({ run: () => this.#compareAgain(), onError: () => undefined })

  /** Creates missing directories, and removes the staged blobs of an earlier process. */
  static async open(dataDir: string, options: FolderBlobStoreOptions): Promise<FolderBlobStore> {
    return new FolderBlobStore(dataDir, await openDirectories(dataDir), options)
  }

  /** For maintenance beside a running service: changes nothing. */
  static openReader(dataDir: string): FolderBlobStore {
    const options = { isReferenced: async () => true, onError: () => undefined, isReadOnly: true }
    return new FolderBlobStore(dataDir, ensureBelow(dataDir), options)
  }

  private constructor(
    dataDir: string,
    ensureDirectory: EnsureDirectory,
    options: FolderBlobStoreOptions & { isReadOnly?: boolean },
  ) {
    this.#dataDir = dataDir
    this.#options = options
    this.memory = new StagingMemory(options.maxStagingBytes)
    this.memory.demandRoom = () => this.#space.demand(this.memory)
    this.small = new SmallBlobs(dataDir, options)
    this.verified = this.small
    this.#space = new DiskSpace({ ...options, dataDir, small: this.small, settleRemovals: () => this.settle() })
    this.#garbage = new Garbage({
      remove: (digest) => this.#leases.run(digest, () => this.#remove(digest)),
      onError: options.onError,
    })
    this.#large = new LargeBlobs(dataDir, ensureDirectory, this.small)
  }

  draft(file = this.#newTmpFile(), arrived?: ContentHash): StagedBlob {
    return new StagedBlob({ file, arrived, isFlushed: true, memory: this.memory, store: this.#store })
  }

  resume(id: string, { size }: SavedBlob, onSaved: OnSaved): ResumableBlob {
    const staging = new StagingFile({
      file: this.#uploadFile(id),
      memory: this.memory,
      resumeAt: size,
      flushBytes: maxUnsavedBytes,
      onFlushed: (flushed) => onSaved({ size: flushed }),
    })
    // Publishes a hard link, so that the upload keeps its bytes if a crash precedes the catalog's commit. The file must
    // not be written from now on.
    return resumableFile(staging, async (file, arrived) => {
      const tmpFile = this.#newTmpFile()
      await link(file, tmpFile)
      return this.draft(tmpFile, arrived)
    })
  }

  async discard(id: string): Promise<void> {
    await rm(this.#uploadFile(id), { force: true })
  }

  async discardOthers(ids: Set<string>): Promise<void> {
    for (const id of await readdir(join(this.#dataDir, 'uploads'))) if (!ids.has(id)) await this.discard(id)
  }

  async open(digest: string, coding: ContentCoding = 'identity'): Promise<OpenBlob | undefined> {
    const bytes = this.small.read(digest, coding)
    // The bytes of an open file survive its unlinking.
    return bytes ? openBytes(bytes) : this.#large.open(digest, coding)
  }

  readNow(digest: string): Buffer | undefined {
    return this.small.read(digest, 'identity')
  }

  putForm(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void> {
    return this.#leases.run(digest, async () => {
      if ((await this.formSize(digest, 'identity')) === undefined) return
      this.#space.demandWithoutDrop()
      if (bytes.length <= maxSmallBytes) await this.small.store(digest, coding, bytes)
      else await this.#large.writeForm(digest, coding, { bytes, tmpFile: this.#newTmpFile() })
    })
  }

  async dropForm(digest: string, coding: CompressedCoding): Promise<void> {
    await this.small.removeForm(digest, coding)
    await this.#large.remove(digest, [coding])
  }

  async forms(digest: string): Promise<CompressedCoding[]> {
    const stored: CompressedCoding[] = []
    for (const coding of compressedCodings) {
      if ((await this.formSize(digest, coding)) !== undefined) stored.push(coding)
    }
    return stored
  }

  async formSize(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return this.small.sizeOf(digest, coding) ?? this.#large.sizeOf(digest, coding)
  }

  /** Removes the unreferenced ones of these blobs in the background, each once it is not leased. */
  collect(digests: string[]): void {
    this.#garbage.collect(digests)
  }

  async erase(digests: string[]): Promise<void> {
    this.collect(digests)
    await this.#garbage.settle()
    await this.small.emptyLog()
  }

  async digests(prefix: string): Promise<string[]> {
    return [...new Set([...this.small.digests(prefix), ...(await this.#large.digests(prefix))])]
  }

  async removeOrphans(digests: string[]): Promise<void> {
    for (const digest of digests) await this.#remove(digest)
  }

  settle(): Promise<void> {
    return this.#garbage.settle()
  }

  async close(): Promise<void> {
    await this.#garbage.close()
    await this.#space.close()
    await this.small.close()
  }

  check() {
    const disk = { status: this.#space.check() }
    const missing = this.missing.length
    if (missing === 0) return { disk }
    void this.#comparing.run()
    return { disk, contents: { status: 'degraded' as const, missing } }
  }

  /** Of these blobs, which files referred to: those that are missing, unreadable, or of another size. */
  async findMissing(refs: BlobRef[]): Promise<BlobRef[]> {
    const missing: BlobRef[] = []
    for (const ref of refs) {
      const isStored = async () => (await this.formSize(ref.digest, 'identity')) === ref.size
      // It may have been deleted since the catalog was read, and stored again since.
      if (!(await isStored()) && (await this.#options.isReferenced(ref.digest)) && !(await isStored()))
        missing.push(ref)
    }
    return missing
  }

  // Missing blobs come back with uploads or by hand, or their files are deleted. So many at once are quickly compared,
  // in turn.
  async #compareAgain() {
    const known = this.missing
    const some = known.slice(0, 1000)
    this.missing = known.slice(1000).concat(await this.findMissing(some).catch(() => some))
  }

  // Leases the blob until the returned function is called, which collects it if no file refers to it. Demands room
  // outside `run`, against deadlock: that waits for removals, and one of them may wait for this digest.
  readonly #store = async (blob: BlobRef, from: Uint8Array | string) => {
    const { digest } = blob
    const release = this.#leases.acquire(digest)
    const end = (isReferenced: boolean) => {
      release()
      if (!isReferenced || this.#garbage.postponed.has(digest)) this.collect([digest])
    }
    const isFile = typeof from === 'string'
    try {
      await this.#space.demand({ bytes: 0 }, isFile)
      await this.#leases.run(digest, () =>
        isFile ? this.#large.publish(from, blob) : this.small.store(digest, 'identity', from),
      )
      return end
    } catch (error) {
      end(false)
      throw error
    }
  }

  // False: to be retried.
  async #remove(digest: string): Promise<boolean> {
    if (this.#leases.isLeased(digest)) return false
    if (await this.#options.isReferenced(digest)) return true
    // Checked after the references, never before: backUp() relies on this order.
    if (this.#options.isBackedUp?.()) return false
    // Files first: on a full disk, they make the room that the database needs. A small blob has none.
    if (this.small.sizeOf(digest, 'identity') === undefined) await this.#large.remove(digest)
    await this.small.remove(digest)
    this.#space.reclaim()
    return true
  }

  #uploadFile(id: string) {
    return join(this.#dataDir, 'uploads', id)
  }

  #newTmpFile() {
    return join(this.#dataDir, 'tmp', randomUUID())
  }
}

/** Counted leases on blobs, and a mutex per digest for changes of its bytes. One process owns a data directory. */
class BlobLeases {
  readonly #leases = new Map<string, number>()
  readonly #tasks = new Map<string, Promise<unknown>>()

  /** Leases a digest, so that its bytes stay. The returned function ends the lease; call it once. */
  acquire(digest: string): () => void {
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1)
    return () => {
      const left = (this.#leases.get(digest) ?? 1) - 1
      if (left > 0) this.#leases.set(digest, left)
      else this.#leases.delete(digest)
    }
  }

  isLeased(digest: string): boolean {
    return this.#leases.has(digest)
  }

  run<T>(digest: string, task: () => Promise<T>): Promise<T> {
    const result = this.#tasks.get(digest)?.then(task) ?? task()
    const ended = result.catch(() => undefined)
    this.#tasks.set(digest, ended)
    void ended.then(() => this.#tasks.get(digest) === ended && this.#tasks.delete(digest))
    return result
  }
}
