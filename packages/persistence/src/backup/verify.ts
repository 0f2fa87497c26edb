import { createHash } from 'node:crypto'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { DataDirError, unreadable } from '../errors.ts'
import type { BlobRef, Damage, Row } from './archive.ts'
import type { Progress } from './progress.ts'
import type { Repository } from './repository.ts'
import type { Snapshot } from './snapshot.ts'

/** What a command works with. */
export interface Job {
  repository: Repository
  /** Whether every byte is read; else only sizes are compared. */
  verify: boolean
  /** Whether damaged blobs are named and left out, with their files; else they fail the job. */
  skipDamaged: boolean
  signal: AbortSignal
  progress: Progress
}

/** A row of a service that stores files, or of what they were until then. */
interface FileOfBlob extends Row {
  path: string
  digest: string
  ended_at?: string
}

/** The damaged blobs that a job has met, each once. */
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

  /** One line for each file of a snapshot that has such a blob, after a sentence; empty if there are none. */
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

  /** @throws {DataDirError} that names every file, if there is damage that was not there when the backup was made. */
  async refuse(snapshot: Snapshot): Promise<void> {
    const known = new Set(snapshot.manifest.damaged.map(({ digest }) => digest))
    if (this.all.every(({ digest }) => known.has(digest))) return
    throw new DataDirError(await this.describe('contents are damaged', snapshot))
  }
}

/** What is wrong with a blob of the repository, or undefined; all its bytes are read if `verify` is set. */
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
 * Compares a snapshot with its digests and its blobs with their sizes, or with their digests. What was damaged when it was
 * made is among the damage. @throws {DataDirError} when the snapshot itself has been altered.
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
