import { posix } from 'node:path'
import type { Clock, Logger, Timer } from '@domains-and-files/http'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { WriteBatch } from './batch/write-batch.ts'

interface CheckOptions {
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
  readonly #options: CheckOptions
  readonly #watched = new Map<string, number>()
  readonly #timers = new Map<string, Timer[]>()
  #isClosed = false

  constructor(options: CheckOptions) {
    this.#options = options
  }

  /** Checks the domains that ended processes left unsettled, unless they are already watched. */
  async start(): Promise<void> {
    for (const name of await this.#options.ledger.unsettledDomains()) {
      const domain = readDomain(name)
      if (typeof domain === 'string' || this.#isWatched(domain)) continue
      this.#watch(domain)
      void this.#check(domain)
    }
  }

  afterBatch(domain: Domain, { isOpen, hasWritten }: WriteBatch) {
    if (isOpen) this.#watch(domain)
    // A late write could overwrite this batch, too.
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

interface SweepOptions {
  ledger: Ledger
  registrar: Pick<RegistrarClient, 'zone'>
  /** The domains to read. */
  domains: { readonly managed: string[] }
  /** Each zone is read once within this time; 0: none is. */
  intervalMs: number
  /** Whether this process is the one that sweeps. */
  isActive: () => boolean
  clock: Clock
  log: Logger
}

/** Leaves the calls after a start to requests. */
const firstPauseMs = 60_000
const pauseMs = 2_000
const idleMs = 60_000

/**
 * Finds changes made outside: reads the zones that no request has read within the interval, the longest unread first. The
 * ledger knows when each was read, so that the sweep continues after a restart or on another replica.
 */
export class ZoneSweep {
  readonly #options: SweepOptions
  /** When this process last tried to read a domain: it may fail, or be on other nameservers. */
  readonly #triedAt = new Map<string, number>()
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: SweepOptions) {
    this.#options = options
  }

  /** Does nothing where it has been started before. */
  start() {
    if (this.#options.intervalMs > 0 && !this.#timer) this.#schedule(firstPauseMs)
  }

  close() {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  /** Progress of the sweep: how many of the domains were read within the interval. */
  async state() {
    const { domains, intervalMs, clock, isActive, ledger } = this.#options
    const sightings = await ledger.knownZones.sightings()
    const times = domains.managed.map((name) => sightings.get(name)?.readAt ?? 0)
    const seen = times.filter((at) => at > clock.now() - intervalMs)
    const oldest = times.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY)
    return {
      interval_s: intervalMs / 1_000,
      is_active: intervalMs > 0 && isActive(),
      domains: times.length,
      seen: seen.length,
      oldest_seen_at: oldest > 0 && oldest < Infinity ? new Date(oldest).toISOString() : null,
    }
  }

  #schedule(inMs: number) {
    if (this.#isClosed) return
    this.#timer = this.#options.clock.setTimer(() => void this.#step(), inMs)
  }

  async #step(): Promise<void> {
    const { registrar, isActive, log, clock } = this.#options
    let name: string | undefined
    try {
      name = isActive() ? await this.#findDue() : undefined
      const domain = name === undefined ? undefined : readDomain(name)
      if (name !== undefined) this.#triedAt.set(name, clock.now())
      if (typeof domain === 'object') await registrar.zone(domain, 'sweep')
    } catch (error) {
      if (!this.#isClosed) log.info({ err: error, domain: name }, 'zone not swept')
    }
    this.#schedule(name === undefined ? idleMs : pauseMs)
  }

  // Zones with a difference that waits for a second read come first.
  async #findDue(): Promise<string | undefined> {
    const { domains, ledger, clock, intervalMs } = this.#options
    const sightings = await ledger.knownZones.sightings()
    const now = clock.now()
    const due = domains.managed.flatMap((name) => {
      const { readAt = 0, isPending = false } = sightings.get(name) ?? {}
      const lastAt = Math.max(readAt, this.#triedAt.get(name) ?? 0)
      return lastAt <= now - (isPending ? idleMs : intervalMs)
        ? [{ name, at: isPending ? 0 : lastAt }]
        : []
    })
    return due.sort((one, other) => one.at - other.at)[0]?.name
  }
}

/** Whether the pattern matches an RRset; `name` is relative to the domain, `@` for the domain itself. */
export type RecordPattern = (domain: string, name: string, type: string) => boolean

/** Parses a list of `fqdn:TYPE` and `domain:name:TYPE` with `*` in each part; undefined for anything else. */
export function parseRecordPatterns(text: string): RecordPattern[] | undefined {
  const patterns = text.split(',').flatMap((entry) => entry.trim().toLowerCase() || [])
  if (!patterns.every((each) => /^[\w.*@-]+(?::[\w.*@-]+){1,2}$/.test(each))) return undefined
  return patterns.map((pattern) => (domain, name, type) => {
    const fqdn = name === '@' ? domain : `${name}.${domain}`
    const record = pattern.split(':').length === 3 ? `${domain}:${name}` : fqdn
    return posix.matchesGlob(`${record}:${type}`.toLowerCase(), pattern)
  })
}
