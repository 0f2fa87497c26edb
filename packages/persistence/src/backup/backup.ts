import { buffer } from 'node:stream/consumers'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { allEnded } from '../background-task.ts'
import { DataDirError, unreadable } from '../errors.ts'
import type { Progress } from '../maintenance-command.ts'
import { BlobFault, type BlobRef, findFault, type OpenBlob, verifiedPieces } from '../open-blob.ts'
import type { BackupSource, Damage, Row } from './archived-service.ts'
import { maxSmallBytes, type Repository, type SmallBlob } from './repository.ts'
import { Snapshot } from './snapshot.ts'

/** With `verify` each byte is read back from the repository. With `skipDamaged` damaged blobs are left out. */
export interface BackupJob extends Job {
  service: string
  source: BackupSource
}

export interface BackupResult {
  snapshot: Snapshot
  damages: DamageList
}

/**
 * Makes an incremental backup while the service may be running: all rows of one snapshot, and the blobs that the
 * repository lacks. After an interruption the next backup reuses the blobs already copied.
 * @throws {DataDirError} naming the damaged files, unless they are skipped and others are sound.
 */
export async function backUp(job: BackupJob): Promise<BackupResult> {
  const { service, source, repository, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  const begun = await Snapshot.begin(repository.folder, service)
  const blobs = { count: 0, bytes: 0 }
  await source.read({
    async rows(tables, files) {
      for (const table of tables) await begun.addTable(table, signal, progress.rows)
      await begun.addFiles(files)
    },
    async blobs(open) {
      for await (const refs of begun.blobs()) {
        blobs.count += refs.length
        for (const { size } of refs) blobs.bytes += size
      }
      progress.begin('copied', blobs)
      for await (const refs of begun.blobs()) await copyLacking({ job, open, damages }, refs)
    },
  })
  if (!skipDamaged || damages.all.length === blobs.count) await damages.refuse(begun)
  const snapshot = await begun.finish({ blobs, damaged: damages.all })
  return { snapshot, damages }
}

interface Copying {
  job: BackupJob
  open: (digest: string) => Promise<OpenBlob | undefined>
  damages: DamageList
}

async function copyLacking(copying: Copying, refs: BlobRef[]): Promise<void> {
  const { repository, verify, signal, progress } = copying.job
  const copied: BlobRef[] = []
  const small: SmallBlob[] = []
  for (let at = 0; at < refs.length; at += concurrentCopies) {
    signal.throwIfAborted()
    const group = refs.slice(at, at + concurrentCopies)
    await allEnded(
      group.map(async (ref) => {
        if ((await findStoredFault(repository, ref, verify)) === undefined) return
        copied.push(ref)
        const found = await copyOne(copying, ref)
        if (typeof found === 'object') small.push(found)
        else if (found) copying.damages.add({ digest: ref.digest, fault: found })
      }),
    )
    for (const ref of group) progress.blob(ref)
  }
  repository.addSmall(small) // One fsync for all.
  for (const ref of verify ? copied : []) {
    const fault = await findStoredFault(repository, ref, true)
    if (fault) copying.damages.add({ digest: ref.digest, fault })
  }
}

/** Stores a large blob, or returns a small one for a batch. Returns a text if the blob is damaged: the fault. */
async function copyOne(copying: Copying, ref: BlobRef): Promise<string | SmallBlob | undefined> {
  const { digest, size } = ref
  try {
    const pieces = readSource(copying, ref)
    if (size <= maxSmallBytes) return { digest, bytes: await buffer(pieces) }
    await copying.job.repository.addLarge(digest, pieces)
    return undefined
  } catch (error) {
    if (error instanceof BlobFault) return error.fault
    throw error
  }
}

/** @throws {BlobFault}, or an error that affects all blobs, such as an unreachable store. */
async function* readSource({ job: { signal }, open }: Copying, ref: BlobRef): AsyncGenerator<Buffer> {
  try {
    await using blob = await open(ref.digest)
    for await (const piece of verifiedPieces(blob, ref)) {
      signal.throwIfAborted()
      yield piece
    }
  } catch (error) {
    if (signal.aborted || error instanceof DataDirError || error instanceof BlobFault) throw error
    throw new BlobFault(ref.digest, unreadable(error))
  }
}

// Enough to overlap the latency of disks and stores; each copy buffers 1 MiB.
const concurrentCopies = 16

/** Options and dependencies of a backup command. */
export interface Job {
  repository: Repository
  /** Whether to read every byte; otherwise only sizes are compared. */
  verify: boolean
  /** Whether to report and leave out damaged blobs and their files; otherwise they fail the job. */
  skipDamaged: boolean
  signal: AbortSignal
  progress: Progress
}

/** A row of `files`, or of `past_files` with `ended_at`, of a service that stores files. */
interface FileOfBlob extends Row {
  path: string
  digest: string
  ended_at?: string
}

/** The damaged blobs that a job has found, each once. */
export class DamageList {
  readonly #faults = new Map<string, string>()

  readonly add = ({ digest, fault }: Damage) => {
    if (!this.#faults.has(digest)) this.#faults.set(digest, fault)
  }

  get all(): Damage[] {
    return [...this.#faults].map(([digest, fault]) => ({ digest, fault }))
  }

  has(digest: string): boolean {
    return this.#faults.has(digest)
  }

  /** `sentence`, then one line for each file of the snapshot with a damaged blob; empty without damage. */
  async describe(sentence: string, snapshot: Snapshot): Promise<string> {
    if (this.#faults.size === 0) return ''
    const lines: string[] = []
    for (const table of ['files', 'past_files']) {
      for await (const rows of snapshot.rows<FileOfBlob>(table)) {
        for (const { path, digest, ended_at: end } of rows) {
          const fault = this.#faults.get(digest)
          const until = end === undefined ? '' : `, until ${end}`
          if (fault) lines.push(`  ${path}${until}: its content ${digest} ${fault}`)
        }
      }
    }
    return [`${this.#faults.size} ${sentence}:`, ...lines].join('\n')
  }

  /** @throws {DataDirError} naming every file, if any damage is newer than the backup. */
  async refuse(snapshot: Snapshot): Promise<void> {
    const known = new Set(snapshot.manifest.damaged.map(({ digest }) => digest))
    if (this.all.every(({ digest }) => known.has(digest))) return
    throw new DataDirError(await this.describe('contents are damaged', snapshot))
  }
}

/** The fault of a blob in the repository, or undefined. `verify` reads all its bytes. */
export async function findStoredFault(
  repository: Repository,
  ref: BlobRef,
  verify: boolean,
): Promise<string | undefined> {
  try {
    if (!verify && repository.has(ref)) return undefined
    await using blob = await repository.open(ref)
    return await findFault(blob, ref)
  } catch (error) {
    return unreadable(error)
  }
}

/**
 * Checks the digests of a snapshot, and the sizes of its blobs (with `verify`: their digests). The result includes damage
 * that its backup recorded. @throws {DataDirError} if the snapshot itself has been altered.
 */
export async function verifySnapshot(job: Job & { snapshot: Snapshot }): Promise<DamageList> {
  const { repository, snapshot, verify, signal, progress } = job
  const { blobs, damaged } = snapshot.manifest
  await snapshot.verify()
  const damages = new DamageList()
  for (const damage of damaged) damages.add(damage)
  progress.begin('checked', blobs)
  for await (const refs of snapshot.blobs()) {
    signal.throwIfAborted()
    for (const ref of refs) {
      const fault = damages.has(ref.digest) ? undefined : await findStoredFault(repository, ref, verify)
      if (fault) damages.add({ digest: ref.digest, fault })
      progress.blob(ref)
    }
    await nextIteration() // Lets signals be delivered where nothing was awaited.
  }
  return damages
}
