import type { Clock, Logger, Timer } from '@domains-and-files/http'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import { changeNotFound, changeNotQueued } from '../errors.ts'
import type { Ledger, StoredChange } from '../ledger/ledger.ts'
import { toChangeRequest, type ZoneWrite } from './zone-write.ts'

interface Options {
  ledger: Ledger
  /** Carries out what is queued for a domain and can be carried out now. */
  carryOut: (domain: Domain) => Promise<void>
  /** False while another process carries out the changes. */
  isActive?: (() => boolean) | undefined
  clock: Clock
  log: Logger
}

const maxActive = 8
/** Changes that arrive within this time share a batch: registrar quota is scarcer than latency. */
const debounceMs = 500
/** How often changes are looked at that have failed and wait: the ledger knows until when. */
const retryMs = 5_000

/** Asynchronous changes: stored in the ledger, carried out at the registrar's pace, however long that takes. */
export class ChangeQueue {
  readonly #options: Options
  readonly #active = new Set<string>()
  #debounce: Timer | undefined
  #retry: Timer | undefined
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
  }

  /** Accepts a change; resolves once it is stored. */
  async add(domain: Domain, write: ZoneWrite): Promise<StoredChange> {
    const { clock, ledger } = this.#options
    const request = toChangeRequest(domain, write, 'async')
    const { change } = await ledger.accept(request)
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
      this.#retryLater()
    })
  }

  close() {
    this.#isClosed = true
    this.#debounce?.cancel()
    this.#retry?.cancel()
  }

  async #startNext(): Promise<void> {
    const { ledger, isActive } = this.#options
    if (isActive?.() === false) return
    for (const name of await ledger.queuedDomains()) {
      if (this.#isClosed || this.#active.size >= maxActive) return
      const domain = readDomain(name)
      if (this.#active.has(name) || typeof domain === 'string') continue
      this.#active.add(name)
      void this.#carryOut(domain)
    }
    if ((await ledger.countQueued()).queued > 0) this.#retryLater()
  }

  async #carryOut(domain: Domain): Promise<void> {
    const { carryOut, log } = this.#options
    try {
      await carryOut(domain)
      this.#active.delete(domain.name)
      if (!this.#isClosed) this.wake()
    } catch (error) {
      this.#active.delete(domain.name)
      if (this.#isClosed) return
      log.warn({ err: error, domain: domain.name }, 'queued changes not carried out')
      this.#retryLater()
    }
  }

  #retryLater() {
    if (this.#isClosed) return
    this.#retry ??= this.#options.clock.setTimer(() => {
      this.#retry = undefined
      this.wake()
    }, retryMs)
  }
}
