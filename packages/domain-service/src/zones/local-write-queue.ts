import type { Domain } from '../dns/domain-name.ts'
import { tooManyWaiting } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import { DomainQueue } from './domain-queue.ts'
import { IdempotentWrites } from './idempotent-writes.ts'
import { maxQueued, type WriteQueue, type WriteQueueOptions } from './write-queue.ts'
import type { QueuedWrite, WriteResult } from './zone-write.ts'

/** The queue of the only process that writes zones, in memory. */
export class LocalWriteQueue implements WriteQueue {
  readonly #options: WriteQueueOptions
  readonly #queues = new Map<string, DomainQueue>()
  readonly #idempotent: IdempotentWrites

  constructor(options: WriteQueueOptions) {
    this.#options = options
    this.#idempotent = new IdempotentWrites(options.batch.ledger, (domain) => this.check(domain))
  }

  write(domain: Domain, request: ChangeRequest, dryRun: boolean): Promise<WriteResult> {
    const run = () => this.#enqueue(domain, { request, dryRun, id: undefined, isAsync: false })
    return request.idempotency && !dryRun ? this.#idempotent.write(domain, request, run) : run()
  }

  carryOut(domain: Domain, { id, request }: QueuedChange): Promise<WriteResult> {
    return this.#enqueue(domain, { request, dryRun: false, id, isAsync: true })
  }

  check(domain: Domain): Promise<void> {
    return this.#queueOf(domain).check()
  }

  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, queue) => sum + queue.waiting, 0)
  }

  async close(): Promise<void> {
    const queues = [...this.#queues.values()]
    await Promise.all(queues.map((queue) => queue.close()))
  }

  #enqueue(domain: Domain, write: Omit<QueuedWrite, 'resolve' | 'reject'>): Promise<WriteResult> {
    const queue = this.#queueOf(domain)
    if (queue.waiting >= maxQueued) return Promise.reject(tooManyWaiting())
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    queue.add({ ...write, resolve, reject })
    return promise
  }

  #queueOf(domain: Domain): DomainQueue {
    const known = this.#queues.get(domain.name)
    if (known) return known
    const { registrar, batch, onBatch } = this.#options
    const queue = new DomainQueue(domain, {
      registrar,
      batch,
      onBatch: (end) => onBatch(domain, end),
      onIdle: () => this.#queues.delete(domain.name),
    })
    this.#queues.set(domain.name, queue)
    return queue
  }
}
