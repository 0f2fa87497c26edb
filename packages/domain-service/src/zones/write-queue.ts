import type { Domain } from '../dns/domain-name.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { BatchParts } from './batch/write-batch.ts'
import type { WriteResult } from './zone-write.ts'

/** What happened in a batch: `isOpen`: a send of it has no final outcome. `hasWritten`: it has sent something. */
export interface BatchEnd {
  isOpen: boolean
  hasWritten: boolean
}

export interface WriteQueueOptions {
  registrar: RegistrarClient
  batch: BatchParts
  onBatch: (domain: Domain, end: BatchEnd) => void
}

/** Carries out the writes that wait for a domain as a batch, one batch at a time; different domains run side by side. */
export interface WriteQueue {
  /** Resolves when the change is done, or evaluated as a dry run. */
  write(domain: Domain, request: ChangeRequest, dryRun: boolean): Promise<WriteResult>
  /** Carries out a queued asynchronous change. Rejects with a 5xx where the change stays queued. */
  carryOut(domain: Domain, change: QueuedChange): Promise<WriteResult>
  /** Reads a zone, resolves its open sends and repairs a late write. Waits for calls however long. */
  check(domain: Domain): Promise<void>
  /** Writes that wait for a batch, over all domains. */
  readonly waiting: number
  /** Resolves when no batch runs any more. */
  close(): Promise<void>
}

/** Maximum queued writes per domain; further requests get 503. */
export const maxQueued = 1_000
