import type { Logger } from '@domains-and-files/http'
import type { Clock, Timer } from '../clock.ts'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { BatchEnd } from './zone-write.ts'

interface Options {
  ledger: Ledger
  clock: Clock
  log: Logger
  /** Milliseconds after which a call to the registrar is given up. */
  timeoutMs: number
  check: (domain: Domain) => Promise<void>
}

/** How long a given-up send may still be carried out. */
const watchMs = 600_000

// In call timeouts: most servers give up a request after one or two minutes; the last check is for slower ones.
const checkAfter = [2, 8, 24]

/** Reads zones in the background whose sends have no final outcome, or may be overwritten by a late write. */
export class ZoneChecks {
  readonly #options: Options
  readonly #watched = new Map<string, number>()
  readonly #timers = new Map<string, Timer[]>()
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
  }

  /** Checks the domains that processes which have ended left unsettled, unless they are watched already. */
  async start(): Promise<void> {
    for (const name of await this.#options.ledger.unsettledDomains()) {
      const domain = readDomain(name)
      if (typeof domain === 'string' || this.#isWatched(domain)) continue
      this.#watch(domain)
      void this.#check(domain)
    }
  }

  afterBatch(domain: Domain, { isOpen, hasWritten }: BatchEnd) {
    if (isOpen) this.#watch(domain)
    // A late write would overwrite this one.
    else if (hasWritten && this.#isWatched(domain)) this.#schedule(domain)
  }

  close() {
    this.#isClosed = true
    for (const timers of this.#timers.values()) for (const timer of timers) timer.cancel()
  }

  #watch(domain: Domain) {
    this.#watched.set(domain.name, this.#options.clock.now() + watchMs)
    this.#schedule(domain)
  }

  #isWatched({ name }: Domain): boolean {
    const until = this.#watched.get(name) ?? 0
    if (until > this.#options.clock.now()) return true
    this.#watched.delete(name)
    return false
  }

  #schedule(domain: Domain) {
    const { clock, timeoutMs } = this.#options
    if (this.#isClosed) return
    for (const timer of this.#timers.get(domain.name) ?? []) timer.cancel()
    const timers = checkAfter.map((factor) =>
      clock.setTimer(() => void this.#check(domain), factor * timeoutMs),
    )
    this.#timers.set(domain.name, timers)
  }

  async #check(domain: Domain): Promise<void> {
    const { ledger, check, log } = this.#options
    try {
      const open = await ledger.openSends(domain.name)
      const late = await ledger.lateSends(domain.name)
      if (this.#isClosed || (open.length === 0 && late.length === 0)) return
      await check(domain)
    } catch (error) {
      log.warn({ err: error, domain: domain.name }, 'zone not checked, checking again')
      if (this.#isWatched(domain)) this.#schedule(domain)
    }
  }
}
