import type { CallQuota } from './budget/call-quota.ts'
import type { ListTurns } from './domain-list/list-reader.ts'
import type { DomainListStore } from './domain-list/list-store.ts'
import type { ChallengeStore } from './ledger/challenge-store.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Versions } from './registrar/response-cache.ts'
import type { WriteQueue, WriteQueueOptions } from './zones/write-queue.ts'

/** Where the service keeps its state, alone or together with other replicas. */
export interface Storage {
  ledger: Ledger
  challenges: ChallengeStore
  quota: CallQuota
  domainList: { store: DomainListStore; turns?: ListTurns }
  /** Only with several replicas. */
  versions?: Versions
  openQueue(options: WriteQueueOptions): WriteQueue
  /** Whether this process runs the background tasks. */
  isActive(): boolean
  /** Runs the background tasks: once, or from time to time as long as this replica is the one that does. */
  startTasks(run: () => Promise<void>): Promise<void>
  close(): Promise<void>
}
