import { HttpError } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import type { Zone } from '../dns/record.ts'
import { tooManyWaiting } from '../errors.ts'
import type { QueuedChange } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { type Cached, ResponseCache } from '../registrar/response-cache.ts'
import type { BatchParts } from './batch/write-batch.ts'
import { ChangeQueue } from './change-queue.ts'
import { DomainQueue } from './domain-queue.ts'
import { IdempotentWrites } from './idempotent-writes.ts'
import { ZoneChecks } from './zone-checks.ts'
import { toChangeRequest, type WriteResult, type ZoneWrite } from './zone-write.ts'

interface Options extends Omit<BatchParts, 'cache' | 'onLateWrite' | 'lookAgainMs'> {
  registrar: RegistrarClient
  cacheTtlMs: number
  /** Milliseconds after which a call to the registrar is given up. */
  timeoutMs: number
  lookAgainMs?: number
}

/**
 * The zones of all domains: cached reads, and writes that lose nothing. The writes that wait for one domain are carried
 * out as a batch, one batch at a time; different domains run side by side.
 */
export class ZoneWriter {
  readonly #options: Options
  readonly #parts: BatchParts
  readonly #cache: ResponseCache<Zone>
  readonly #queues = new Map<string, DomainQueue>()
  readonly #checks: ZoneChecks
  readonly #idempotent: IdempotentWrites
  /** The asynchronous changes. */
  readonly changes: ChangeQueue
  #lateWrites = 0

  constructor(options: Options) {
    const { ledger, clock, log, timeoutMs, cacheTtlMs, lookAgainMs = 1_000 } = options
    this.#options = options
    this.#cache = new ResponseCache(options.registrar.cacheOptions(cacheTtlMs))
    this.#parts = {
      ...options,
      lookAgainMs,
      cache: this.#cache,
      onLateWrite: () => this.#lateWrites++,
    }
    const check = (domain: Domain) => this.check(domain)
    this.#checks = new ZoneChecks({ ledger, clock, timeoutMs, log, check })
    this.#idempotent = new IdempotentWrites(ledger, check)
    const write = (domain: Domain, change: QueuedChange) => this.#writeQueued(domain, change)
    this.changes = new ChangeQueue({ ledger, clock, log, write })
  }

  /** Resolves what the last process left open: in the background, and before each domain's next batch. */
  async start(): Promise<void> {
    try {
      await this.#options.ledger.recover()
    } catch (error) {
      this.#options.log.error({ err: error }, 'interrupted changes not recovered')
    }
    await this.#checks.start()
    this.changes.wake()
  }

  /** A zone at most `cacheTtlMs` old, or read now where `fresh`. */
  read(domain: Domain, fresh: boolean): Promise<Cached<Zone>> {
    return this.#cache.read(domain.name, () => this.#options.registrar.zone(domain, 'read'), {
      fresh,
      mayBeStale: isTransient,
    })
  }

  /** Changes a zone safely; resolves when the change is done, or evaluated as a dry run. */
  write(domain: Domain, write: ZoneWrite): Promise<WriteResult> {
    const request = toChangeRequest(domain, write)
    const run = () => this.#enqueue(domain, { request, dryRun: write.dryRun, id: undefined })
    return request.idempotency && !write.dryRun
      ? this.#idempotent.write(domain, request, run)
      : run()
  }

  /** Reads a zone, resolves its open sends and repairs a late write. Waits for calls however long. */
  check(domain: Domain): Promise<void> {
    return this.#queueOf(domain).check()
  }

  /** Writes that wait for a batch, over all domains. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, queue) => sum + queue.waiting, 0)
  }

  /** Hits and misses of the zone cache. */
  get counts() {
    return this.#cache.counts
  }

  /** Late writes that were repaired. */
  get lateWrites(): number {
    return this.#lateWrites
  }

  /** Resolves when no batch runs any more. Asynchronous changes stay in the ledger. */
  async settle(): Promise<void> {
    this.#checks.close()
    this.changes.close()
    const queues = [...this.#queues.values()]
    await Promise.all(queues.map((queue) => queue.close()))
  }

  // Rejects with a 5xx where the change stays queued.
  #writeQueued(domain: Domain, change: QueuedChange): Promise<WriteResult> {
    return this.#enqueue(domain, { ...change, dryRun: false })
  }

  #enqueue(
    domain: Domain,
    {
      request,
      dryRun,
      id,
    }: Pick<QueuedChange, 'request'> & { dryRun: boolean; id: number | undefined },
  ): Promise<WriteResult> {
    const queue = this.#queueOf(domain)
    if (queue.waiting >= maxQueued) return Promise.reject(tooManyWaiting())
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    queue.add({ request, dryRun, id, isAsync: id !== undefined, resolve, reject })
    return promise
  }

  #queueOf(domain: Domain): DomainQueue {
    const known = this.#queues.get(domain.name)
    if (known) return known
    const queue = new DomainQueue(domain, {
      registrar: this.#options.registrar,
      batch: this.#parts,
      onBatch: (end) => this.#checks.afterBatch(domain, end),
      onIdle: () => this.#queues.delete(domain.name),
    })
    this.#queues.set(domain.name, queue)
    return queue
  }
}

/** Maximum queued writes per domain; further requests get 503. */
const maxQueued = 1_000

/** Whether a failure may pass by itself, so that an older value serves better than none. */
export const isTransient = (error: unknown) =>
  error instanceof HttpError && error.status >= 500 && error.code.startsWith('registrar_')
