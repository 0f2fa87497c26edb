import { createHash } from 'node:crypto'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { DataDirError, unreadable } from '../errors.ts'
import type { BlobRef, Damage, Row } from './archive.ts'
import type { Progress } from './progress.ts'
import type { Repository } from './repository.ts'
import type { Snapshot } from './snapshot.ts'

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
export async function findFault(
  repository: Repository,
  ref: BlobRef,
  verify: boolean,
): Promise<string | undefined> {
  try {
    if (!verify && repository.has(ref)) return undefined
    await using blob = await repository.open(ref)
    if (!blob) return 'is missing'
    if (blob.size !== ref.size) return `has ${blob.size} bytes instead of ${ref.size}`
    const hash = createHash('sha256')
    for (let at = 0; at < blob.size; at += chunkBytes) hash.update(await blob.read(at, chunkBytes))
    return hash.digest('hex') === ref.digest ? undefined : 'has been altered'
  } catch (error) {
    return unreadable(error)
  }
}

/**
 * Checks the digests of a snapshot, and the sizes of its blobs (with `verify`: their digests). The result includes damage
 * that its backup recorded. @throws {DataDirError} if the snapshot itself has been altered.
 */
export async function verifySnapshot(
  job: Omit<Job, 'skipDamaged'> & { snapshot: Snapshot },
): Promise<DamageList> {
  const { repository, snapshot, verify, signal, progress } = job
  const { blobs, damaged } = snapshot.manifest
  await snapshot.verify()
  const damages = new DamageList()
  for (const damage of damaged) damages.add(damage)
  progress.begin('checked', blobs)
  for await (const refs of snapshot.blobs()) {
    signal.throwIfAborted()
    for (const ref of refs) {
      const fault = damages.has(ref.digest) ? undefined : await findFault(repository, ref, verify)
      if (fault) damages.add({ digest: ref.digest, fault })
      progress.blob(ref)
    }
    await nextIteration() // Lets signals be delivered where nothing was awaited.
  }
  return damages
}

const chunkBytes = 1_048_576
