import { hash } from 'node:crypto'
import { DataDirError, unreadable } from '../errors.ts'
import type { BackupSource, BlobRef, ReadableBlob } from './archive.ts'
import type { Progress } from './progress.ts'
import { maxSmallBytes, type Repository } from './repository.ts'
import { type Snapshot, SnapshotWriter } from './snapshot.ts'
import { DamageList, findFault } from './verify.ts'

export interface BackupJob {
  service: string
  source: BackupSource
  repository: Repository
  /** Whether every byte is read again in the repository; else only sizes are compared. */
  verify: boolean
  /** Whether damaged blobs are named and left behind; else they fail the backup. */
  skipDamaged: boolean
  signal: AbortSignal
  progress: Progress
}

export interface BackupResult {
  snapshot: Snapshot
  damages: DamageList
}

/**
 * Makes a backup while the service may be running: the rows of one moment, and each blob that they refer to and that the
 * repository lacks. An interrupted backup is continued by the next one, which finds the blobs that are there.
 * @throws {DataDirError} that names the damaged files, unless they are skipped.
 */
export async function backUp(job: BackupJob): Promise<BackupResult> {
  const { service, source, repository, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  const writer = await SnapshotWriter.create(repository.folder)
  const blobs = { count: 0, bytes: 0 }
  await source.read({
    async rows(tables, files) {
      for (const table of tables) await writer.addTable(table, signal, progress.rows)
      await writer.addFiles(files)
    },
    async blobs(open) {
      for await (const refs of writer.read().blobs()) addTo(blobs, refs)
      progress.begin('copied', blobs)
      const copy = new BlobCopy(job, open, damages)
      for await (const refs of writer.read().blobs()) await copy.copy(refs)
    },
  })
  if (!skipDamaged) await damages.refuse(writer.read())
  const snapshot = await writer.finish({ service, blobs, damaged: damages.all })
  return { snapshot, damages }
}

function addTo(sum: { count: number; bytes: number }, refs: BlobRef[]) {
  sum.count += refs.length
  for (const { size } of refs) sum.bytes += size
}

type OpenBlob = (digest: string) => Promise<ReadableBlob | undefined>

class BlobCopy {
  readonly #job: BackupJob
  readonly #open: OpenBlob
  readonly #damages: DamageList

  constructor(job: BackupJob, open: OpenBlob, damages: DamageList) {
    this.#job = job
    this.#open = open
    this.#damages = damages
  }

  /** Copies those that the repository lacks. */
  async copy(refs: BlobRef[]): Promise<void> {
    const { repository, verify, signal, progress } = this.#job
    const small: SmallBlob[] = []
    for (let at = 0; at < refs.length; at += concurrentCopies) {
      signal.throwIfAborted()
      const group = refs.slice(at, at + concurrentCopies)
      // All have ended when it throws.
      const ends = await Promise.allSettled(group.map((ref) => this.#copyOne(ref)))
      const failed = ends.find((end) => end.status === 'rejected')
      if (failed) throw failed.reason
      small.push(...ends.flatMap((end) => (end.status === 'fulfilled' && end.value) || []))
      for (const ref of group) progress.blob(ref)
    }
    repository.addSmall(small) // With one flush.
    if (!verify) return
    for (const ref of refs) if (!this.#damages.has(ref.digest)) await this.#verify(ref)
  }

  /** Returns a small blob, to be stored together with others. */
  async #copyOne(ref: BlobRef): Promise<SmallBlob | undefined> {
    const { repository, verify } = this.#job
    if ((await findFault(repository, ref, verify)) === undefined) return undefined
    try {
      const found = await this.#transfer(ref)
      if (typeof found === 'object') return found
      if (found) this.#damages.add({ digest: ref.digest, fault: found })
    } catch (error) {
      if (!(error instanceof UnreadableBlob)) throw error
      this.#damages.add({ digest: ref.digest, fault: unreadable(error.cause) })
    }
  }

  /** Returns a fault, or a small blob; a large one is stored. */
  async #transfer({ digest, size }: BlobRef): Promise<string | SmallBlob | undefined> {
    await using blob = await this.#open(digest).catch(throwUnreadable)
    if (!blob) return 'is missing'
    if (blob.size !== size) return `has ${blob.size} bytes instead of ${size}`
    const { repository, signal } = this.#job
    const read: ReadableBlob['read'] = (...range) => blob.read(...range).catch(throwUnreadable)
    if (size > maxSmallBytes) {
      const isRight = await repository.addLarge({ digest, size }, read, signal)
      return isRight ? undefined : 'has been altered'
    }
    const bytes = await read(0, size)
    return hash('sha256', bytes) === digest ? { digest, bytes } : 'has been altered'
  }

  async #verify(ref: BlobRef) {
    const fault = await findFault(this.#job.repository, ref, true)
    if (fault) this.#damages.add({ digest: ref.digest, fault })
  }
}

interface SmallBlob {
  digest: string
  bytes: Buffer
}

/** The source failed, not the repository. */
class UnreadableBlob extends Error {}

// A `DataDirError` concerns all blobs, such as a store that does not answer.
function throwUnreadable(cause: unknown): never {
  throw cause instanceof DataDirError ? cause : new UnreadableBlob('unreadable', { cause })
}

// Enough to overlap the waits for disks and stores; with 1 MiB each.
const concurrentCopies = 16
