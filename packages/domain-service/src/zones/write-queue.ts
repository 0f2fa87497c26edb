import type { Domain } from '../dns/domain-name.ts'
import {
  idempotencyKeyReused,
  ledgerUnavailable,
  serviceStopping,
  tooManyWaiting,
  writeNotConfirmed,
} from '../errors.ts'
import type { ChangeRequest, Ledger, QueuedChange, StoredChange } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { BatchDependencies } from './batch/write-batch.ts'
import { DomainQueue } from './domain-queue.ts'
import {
  type BatchEnd,
  fromStoredProblem,
  type QueuedWrite,
  readResult,
  toStoredProblem,
  type WriteResult,
} from './zone-write.ts'

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
/** Maximum characters of JSON of the queued writes of one domain, and of all; further requests get 503. */
const maxQueuedLength = 96 * 1024 * 1024
const maxTotalLength = 128 * 1024 * 1024

/** Asynchronous changes that `queued` gives at once. */
const maxPulled = 100

/** Carries out the writes that wait for a domain as a batch, one batch at a time; different domains run side by side. */
export class WriteQueue {
  readonly #ledger: Ledger
  readonly #open: OpenDomain
  readonly #domains = new Map<string, DomainWrites>()
  /** Characters of JSON of the writes that wait, by domain. */
  readonly #lengths = new Map<string, number>()
  #totalLength = 0
  #isClosing = false
  /** The asynchronous changes that this process has queued: the first, and the last so far. */
  #queued = { first: Number.POSITIVE_INFINITY, last: 0 }

  /** `open` is called for the first write of a domain, and again for the next one after `onIdle`. */
  constructor(ledger: Ledger, open: OpenDomain) {
    this.#ledger = ledger
    this.#open = open
  }

  /** Queues an asynchronous change. @returns the former one where its idempotency key was used before. */
  async enqueue(request: ChangeRequest): Promise<StoredChange> {
    const { id, isNew, change } = await this.#ledger.accept(request, { isAsync: true })
    const { first, last } = this.#queued
    if (isNew) this.#queued = { first: Math.min(first, id), last: Math.max(last, id) }
    return change
  }

  /** The place of a write that is accepted now, which the ledger does not have; or of a queued change. */
  orderOf(id: number | undefined): number {
    const { first, last } = this.#queued
    if (id === undefined) return last + 0.5
    return id < first ? 0 : id
  }

  async write(domain: Domain, request: ChangeRequest): Promise<WriteResult> {
    if (this.#isClosing) throw serviceStopping()
    const writes = this.#writesOf(domain)
    const length = JSON.stringify(request.edit).length
    const ofDomain = (this.#lengths.get(domain.name) ?? 0) + length
    const isFull = ofDomain > maxQueuedLength || this.#totalLength + length > maxTotalLength
    if (isFull || writes.waiting >= maxQueued) throw tooManyWaiting()
    this.#countLength(domain, length)
    try {
      return await writes.write(request)
    } finally {
      this.#countLength(domain, -length)
    }
  }

  #countLength({ name }: Domain, length: number) {
    const ofDomain = (this.#lengths.get(name) ?? 0) + length
    if (ofDomain > 0) this.#lengths.set(name, ofDomain)
    else this.#lengths.delete(name)
    this.#totalLength += length
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

  /** Whether writes of this domain wait or are under way in this process. */
  isBusy(domain: Domain): boolean {
    return this.#domains.has(domain.name)
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
  const { ledger } = options.batch
  const queue: WriteQueue = new WriteQueue(
    ledger,
    (domain, onIdle) => new LocalDomain(domain, { ...options, onIdle, idempotent, queue }),
  )
  const idempotent = new IdempotentWrites(ledger, (domain) => queue.check(domain))
  return queue
}

interface LocalOptions extends WriteQueueOptions {
  onIdle: () => void
  idempotent: IdempotentWrites
  queue: Pick<WriteQueue, 'orderOf'>
}

class LocalDomain implements DomainWrites {
  readonly #domain: Domain
  readonly #options: LocalOptions
  readonly #queue: DomainQueue
  /** The ends of asynchronous changes that wait for a batch, or are in one. */
  readonly #pulled = new Map<number, Promise<WriteResult>>()

  constructor(domain: Domain, options: LocalOptions) {
    this.#domain = domain
    this.#options = options
    this.#queue = new DomainQueue(domain, {
      ...options,
      onBatch: (end) => options.onBatch(domain, end),
      pull: () => this.#pull(),
      isShared: false,
    })
  }

  write(request: ChangeRequest): Promise<WriteResult> {
    const { idempotent, queue } = this.#options
    // In the order in which they came, however long it takes to look up their keys.
    const order = queue.orderOf(undefined)
    const run = (id?: number) => this.#add({ request, order, id, isAsync: false })
    return request.idempotency ? idempotent.write(this.#domain, request, run) : run()
  }

  carryOut({ id, request }: QueuedChange): Promise<WriteResult> {
    const known = this.#pulled.get(id)
    if (known) return known
    const order = this.#options.queue.orderOf(id)
    const end = this.#add({ request, order, id, isAsync: true })
    this.#pulled.set(id, end)
    const forget = () => void this.#pulled.delete(id)
    end.then(forget, forget)
    return end
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

  async #pull(): Promise<number> {
    const queued = await this.#options.batch.ledger.queued(this.#domain.name)
    for (const change of queued) void this.carryOut(change)
    const last = queued.at(-1)
    return last && queued.length >= maxPulled ? this.#options.queue.orderOf(last.id) : Infinity
  }

  #add(write: Omit<QueuedWrite, 'resolve' | 'reject'>): Promise<WriteResult> {
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    this.#queue.add({ ...write, resolve, reject })
    return promise
  }
}

/** Carries out a change that the ledger has accepted under this id. */
type CarryOut = (id: number) => Promise<WriteResult>

/**
 * Writes with an Idempotency-Key: the same caller, key and request get the same result and no second write, also while
 * the first one runs and after a crash. @throws 422 `idempotency_key_reused` for another request under the same key.
 */
export class IdempotentWrites {
  readonly #ledger: Ledger
  readonly #check: (domain: Domain) => Promise<void>
  readonly #running = new Map<string, { fingerprint: string; result: Promise<WriteResult> }>()

  /** `check` resolves the open sends of a domain. */
  constructor(ledger: Ledger, check: (domain: Domain) => Promise<void>) {
    this.#ledger = ledger
    this.#check = check
  }

  async write(domain: Domain, request: ChangeRequest, carryOut: CarryOut): Promise<WriteResult> {
    const { key = '', fingerprint = '' } = request.idempotency ?? {}
    const id = JSON.stringify([request.callerId ?? request.by, key])
    const running = this.#running.get(id)
    if (running) {
      if (running.fingerprint !== fingerprint) throw idempotencyKeyReused()
      return running.result
    }
    const result = this.#carryOutOnce(domain, request, carryOut)
    this.#running.set(id, { fingerprint, result })
    try {
      return await result
    } finally {
      this.#running.delete(id)
    }
  }

  async #carryOutOnce(domain: Domain, request: ChangeRequest, carryOut: CarryOut) {
    for (let isChecked = false; ; isChecked = true) {
      const { id, isNew } = await this.#ledger.accept(request, { isAsync: false })
      if (isNew) return carryOut(id)
      const change = await this.#ledger.find(id)
      if (change?.status === 'confirmed') return readResult(this.#ledger, change)
      if (change?.problem) throw fromStoredProblem(change.problem)
      if (!change || isChecked) throw writeNotConfirmed(notConfirmed(id))
      if (change.sentAt) {
        // The process that sent it has ended.
        await this.#check(domain)
      } else {
        // A failing disk has kept an earlier attempt from being ended: this releases its key.
        const problem = toStoredProblem(ledgerUnavailable(undefined))
        await this.#ledger.endUnsent({ id, request }, { problem })
      }
    }
  }
}

const notConfirmed = (id: number) =>
  `Change ${id} is not confirmed yet: read the zone before you try again`
