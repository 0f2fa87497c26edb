import type { Domain } from '../dns/domain-name.ts'
import { serviceStopping, tooManyWaiting } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { BatchDependencies } from './batch/write-batch.ts'
import { DomainQueue } from './domain-queue.ts'
import { IdempotentWrites } from './idempotent-writes.ts'
import type { QueuedWrite, WriteResult } from './zone-write.ts'

/** What happened in a batch: `isOpen`: a send of it has no final outcome. `hasWritten`: it has sent something. */
export interface BatchEnd {
  isOpen: boolean
  hasWritten: boolean
}

export interface WriteQueueOptions {
  registrar: RegistrarClient
  batch: BatchDependencies
  onBatch: (domain: Domain, end: BatchEnd) => void
}

/** The writes of one domain: `LocalDomain` where one process writes zones, `SharedDomain` where several do. */
export interface DomainWrites {
  /** Resolves when the change is done. */
  write(request: ChangeRequest): Promise<WriteResult>
  /** Carries out a queued asynchronous change. Rejects with a 5xx where the change stays queued. */
  carryOut(change: QueuedChange): Promise<WriteResult>
  /** Reads the zone, resolves its open sends and repairs a late write. Waits for calls however long. */
  check(): Promise<void>
  /** Another process has queued or ended a change. */
  wake(): void
  readonly waiting: number
  /** Carries out the writes whose clients wait; resolves when no batch runs any more. */
  close(): Promise<void>
}

type OpenDomain = (domain: Domain, onIdle: () => void) => DomainWrites

/** Maximum queued writes per domain; further requests get 503. */
export const maxQueued = 1_000

/** Carries out the writes that wait for a domain as a batch, one batch at a time; different domains run side by side. */
export class WriteQueue {
  readonly #open: OpenDomain
  readonly #domains = new Map<string, DomainWrites>()
  #isClosing = false

  /** `open` is called for the first write of a domain, and again for the next one after `onIdle`. */
  constructor(open: OpenDomain) {
    this.#open = open
  }

  async write(domain: Domain, request: ChangeRequest): Promise<WriteResult> {
    if (this.#isClosing) throw serviceStopping()
    const writes = this.#writesOf(domain)
    if (writes.waiting >= maxQueued) throw tooManyWaiting()
    return writes.write(request)
  }

  async carryOut(domain: Domain, change: QueuedChange): Promise<WriteResult> {
    return this.#writesOf(domain).carryOut(change)
  }

  check(domain: Domain): Promise<void> {
    return this.#writesOf(domain).check()
  }

  /** A change of this domain was queued or has ended; of any domain if it is undefined. */
  wake(domain?: string) {
    const woken = domain ? [this.#domains.get(domain)] : this.#domains.values()
    for (const each of woken) each?.wake()
  }

  /** Writes that wait for a batch, over all domains. */
  get waiting(): number {
    return [...this.#domains.values()].reduce((sum, { waiting }) => sum + waiting, 0)
  }

  /** Resolves when no batch runs any more. */
  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all([...this.#domains.values()].map((domain) => domain.close()))
  }

  #writesOf(domain: Domain): DomainWrites {
    const known = this.#domains.get(domain.name)
    if (known) return known
    const writes = this.#open(domain, () => this.#domains.delete(domain.name))
    this.#domains.set(domain.name, writes)
    return writes
  }
}

/** The queue of the only process that writes zones, in memory. */
export function openLocalQueue(options: WriteQueueOptions): WriteQueue {
  const { registrar, batch, onBatch } = options
  const queue: WriteQueue = new WriteQueue((domain, onIdle) => {
    const ofDomain = new DomainQueue(domain, {
      registrar,
      batch,
      onBatch: (end) => onBatch(domain, end),
      onIdle,
    })
    return new LocalDomain(domain, ofDomain, idempotent)
  })
  const idempotent = new IdempotentWrites(batch.ledger, (domain) => queue.check(domain))
  return queue
}

class LocalDomain implements DomainWrites {
  readonly #domain: Domain
  readonly #queue: DomainQueue
  readonly #idempotent: IdempotentWrites

  constructor(domain: Domain, queue: DomainQueue, idempotent: IdempotentWrites) {
    this.#domain = domain
    this.#queue = queue
    this.#idempotent = idempotent
  }

  write(request: ChangeRequest): Promise<WriteResult> {
    const run = () => this.#add({ request, id: undefined, isAsync: false })
    return request.idempotency ? this.#idempotent.write(this.#domain, request, run) : run()
  }

  carryOut({ id, request }: QueuedChange): Promise<WriteResult> {
    return this.#add({ request, id, isAsync: true })
  }

  check(): Promise<void> {
    return this.#queue.check()
  }

  wake() {}

  get waiting(): number {
    return this.#queue.waiting
  }

  close(): Promise<void> {
    return this.#queue.close()
  }

  #add(write: Omit<QueuedWrite, 'resolve' | 'reject'>): Promise<WriteResult> {
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    this.#queue.add({ ...write, resolve, reject })
    return promise
  }
}
