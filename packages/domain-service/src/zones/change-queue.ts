import { type Clock, HttpError, type Logger, type Timer } from '@domains-and-files/http'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import { applyEdit } from '../dns/edits/apply-edit.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { Zone } from '../dns/record.ts'
import { changeNotFound, changeNotQueued } from '../errors.ts'
import type { ChangeRequest, Ledger, StoredChange } from '../ledger/ledger.ts'
import { toChangeRequest, type ZoneWrite } from './zone-write.ts'

interface Options {
  ledger: Ledger
  /** Carries out what is queued for a domain and can be carried out now. */
  carryOut: (domain: Domain) => Promise<void>
  /** The zone as a write would find it now. */
  readCurrent: (domain: Domain) => Promise<Zone>
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

  /**
   * Accepts a change; resolves once it is stored.
   * @throws {HttpError} validation_failed for a list or an RRset that is faulty and that no live record excuses.
   */
  async add(domain: Domain, write: ZoneWrite): Promise<StoredChange> {
    const { clock, ledger } = this.#options
    const request = toChangeRequest(domain, write, 'async')
    await this.#demandValid(domain, request)
    const { change } = await ledger.accept(request)
    this.#debounce ??= clock.setTimer(() => {
      this.#debounce = undefined
      this.wake()
    }, debounceMs)
    return change
  }

  // Only a faulty request costs a read. A repeated one is answered as it was; without a zone the outcome says what is wrong.
  async #demandValid(domain: Domain, request: ChangeRequest) {
    const { ledger, readCurrent } = this.#options
    const empty = { domain: domain.name, usesRegistrarDns: true, emailType: undefined, rows: [] }
    if (!findFaults(empty, request.edit)) return
    if ((await ledger.proposals.find(request)) !== undefined) return
    const live = await readCurrent(domain).catch(() => undefined)
    const faults = live && findFaults(live, request.edit)
    if (faults) throw faults
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

function findFaults(zone: Zone, edit: ZoneEdit): HttpError | undefined {
  if (!['replace', 'setRrset', 'removeRrset'].includes(edit.kind)) return undefined
  try {
    applyEdit(zone, edit)
  } catch (error) {
    if (error instanceof HttpError && error.code === 'validation_failed') return error
  }
  return undefined
}
