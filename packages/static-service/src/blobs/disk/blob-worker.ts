import { workerData } from 'node:worker_threads'
import { DatabaseFiles } from '@domains-and-files/persistence'
import { isOutage, openWriter } from '../../sqlite/connection.ts'
import { serveCalls } from '../../sqlite/worker-rpc.ts'
import type { ContentCoding } from '../blob-path.ts'
import type { VerifiedContent } from '../integrity.ts'
import {
  digestPrefixes,
  prepareDigests,
  prepareRecordVerified,
  prepareRemove,
  prepareStore,
  reclaim,
} from './blob-statements.ts'

// The thread that writes to the database of small blobs: it waits for fsync, the event loop does not.

export type BlobCommand =
  | { kind: 'store'; digest: string; coding: ContentCoding; bytes: Uint8Array }
  /** One coding, or all. */
  | { kind: 'remove'; digest: string; coding: ContentCoding | undefined }
  | ({ kind: 'verified' } & VerifiedContent)

/** Of a removal, whether what was to be removed was there. */
export type BlobOutcome = { done: boolean } | { failed: string; code: string }

const file = String(workerData)
const db = openWriter(file)
const store = prepareStore(db)
const remove = prepareRemove(db)
const recordVerified = prepareRecordVerified(db)
const files = new DatabaseFiles(file)

const methods = {
  commit,
  digests: prepareDigests(db),
  prefixes: (_input: null) => digestPrefixes(db),
  reclaim: (job: Parameters<typeof reclaim>[1]) => reclaim(db, job),
}

export type BlobWorkerMethods = typeof methods

serveCalls(methods, () => void db.close())

// If the group fails, each command is tried alone: on a full disk, removals still work where stores do not.
function commit(commands: BlobCommand[]): BlobOutcome[] {
  try {
    return db.transaction(() => applyAll(commands)).immediate()
  } catch (error) {
    // Each would wait as long for the lock of another process.
    if (isOutage(error)) throw error
    if (commands.length === 1) return [failureOf(error)]
    return commands.flatMap((command) => commit([command]))
  }
}

function applyAll(commands: BlobCommand[]): BlobOutcome[] {
  const outcomes = commands.map(apply)
  // What is committed to deleted files is lost. An error that crosses threads keeps its code.
  if (!files.areIntact)
    throw Object.assign(new Error(`files of ${file} were deleted or replaced`), {
      code: 'DATABASE_UNAVAILABLE',
    })
  return outcomes
}

function apply(command: BlobCommand): BlobOutcome {
  if (command.kind === 'remove') return { done: remove(command.digest, command.coding) }
  if (command.kind === 'verified') recordVerified(command)
  else store(command.digest, command.coding, command.bytes)
  return { done: true }
}

function failureOf(error: unknown): BlobOutcome {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { failed: String(error), code }
}
