import { type Clock, HttpError, type Logger, type Timer } from '@domains-and-files/http'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import { changeNotFound, changeNotQueued } from '../errors.ts'
import type { ChangeRequest, Ledger, QueuedChange, StoredChange } from '../ledger/ledger.ts'
import { toChangeRequest, type ZoneWrite } from './zone-write.ts'

interface Options {
  ledger: Ledger
  /** Stores a change. */
  enqueue: (request: ChangeRequest) => Promise<StoredChange>
  /** Carries a change out. Rejects with a 5xx where the change stays queued. */
  write: (domain: Domain, change: QueuedChange) => Promise<unknown>
  /** False while another process carries out the changes. */
  isActive?: (() => boolean) | undefined
  clock: Clock
  log: Logger
}

const maxActive = 8
/** Changes that arrive within this time share a batch: registrar quota is scarcer than latency. */
const debounceMs = 500
const firstRetryMs = 5_000
const longestRetryMs = 300_000

/** Asynchronous changes: stored in the ledger, carried out at the registrar's pace, however long that takes. */
export class ChangeQueue {
  readonly #options: Options
  readonly #active = new Set<string>()
  /** Domains that wait after a failure that may pass. */
  readonly #waiting = new Map<string, Timer>()
  readonly #failures = new Map<string, number>()
  #debounce: Timer | undefined
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
  }

  /** Accepts a change; resolves once it is stored. */
  async add(domain: Domain, write: ZoneWrite): Promise<StoredChange> {
    const { clock, enqueue } = this.#options
    const change = await enqueue(toChangeRequest(domain, write, 'async'))
    this.#debounce ??= clock.setTimer(() => {
      this.#debounce = undefined
      this.wake()
    }, debounceMs)
    return change
  }

  /** @throws 404 for an unknown change, 409 for one that is not queued any more. */
  async cancel(id: number): Promise<StoredChange> {
    const { ledger } = this.#options
    const cancelled = await ledger.cancel(id)
    if (cancelled) return cancelled
    const change = await ledger.find(id)
    throw change ? changeNotQueued(id, change.status) : changeNotFound(id)
  }

  /** Looks for changes that can be carried out now. */
  wake() {
    this.#startNext().catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'queued changes not read')
    })
  }

  close() {
    this.#isClosed = true
    this.#debounce?.cancel()
    for (const timer of this.#waiting.values()) timer.cancel()
  }

  async #startNext(): Promise<void> {
    if (this.#options.isActive?.() === false) return
    for (const name of await this.#options.ledger.queuedDomains()) {
      if (this.#isClosed || this.#active.size >= maxActive) return
      const domain = readDomain(name)
      const isBusy = this.#active.has(name) || this.#waiting.has(name)
      if (isBusy || typeof domain === 'string') continue
      this.#active.add(name)
      void this.#carryOut(domain)
    }
  }

  async #carryOut(domain: Domain): Promise<void> {
    const { ledger, write } = this.#options
    try {
      const changes = await ledger.queued(domain.name)
      const ends = await Promise.allSettled(changes.map((each) => write(domain, each)))
      const delayed = changes.filter((_, at) => isDelayed(ends[at]))
      if (delayed.length > 0) this.#retryLater(domain.name, delayed)
      else this.#failures.delete(domain.name)
    } catch (error) {
      this.#options.log.error({ err: error, domain: domain.name }, 'queued changes not carried out')
      this.#retryLater(domain.name, [])
    }
    this.#active.delete(domain.name)
    if (!this.#isClosed) this.wake()
  }

  #retryLater(name: string, delayed: QueuedChange[]) {
    if (this.#isClosed) return
    const failures = (this.#failures.get(name) ?? 0) + 1
    this.#failures.set(name, failures)
    const wait = Math.min(longestRetryMs, firstRetryMs * 2 ** (failures - 1))
    const retry = async () => {
      this.#waiting.delete(name)
      await this.#requeue(delayed)
      this.wake()
    }
    this.#waiting.set(
      name,
      this.#options.clock.setTimer(() => void retry(), wait),
    )
  }

  // A failing disk may have kept the batch from putting its changes back into the queue.
  async #requeue(changes: QueuedChange[]): Promise<void> {
    const { ledger, log } = this.#options
    try {
      for (const { id } of changes) {
        if ((await ledger.find(id))?.status === 'sending') await ledger.requeue(id)
      }
    } catch (error) {
      log.error({ err: error }, 'queued changes not read')
    }
  }
}

const isDelayed = (end: PromiseSettledResult<unknown> | undefined) =>
  end?.status === 'rejected' && mayPass(end.reason)

// What is stored as unconfirmed is not queued any more.
const mayPass = (error: unknown) =>
  !(error instanceof HttpError) || (error.status >= 500 && error.code !== 'write_not_confirmed')
