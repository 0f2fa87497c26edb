import { posix } from 'node:path'
import type { Timer } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'

interface CheckOptions extends ZoneDependencies {
  queue: { isBusy(domain: Domain): boolean; check(domain: Domain): Promise<void> }
}

// In call timeouts: most servers give up a request after one or two minutes; the last check is for slower ones.
const checkAfter = [0, 2, 8, 24]

/**
 * Reads zones in the background whose sends have no final outcome, or may be overwritten by a late write: some times after
 * the last send of the domain, and those that ended processes left also at once. The ledger knows them.
 */
export function checkZones({ ledger, clock, log, timeoutMs, isActive, queue }: CheckOptions): BackgroundTask {
  const checkedAt = new Map<string, number>()
  const run = async () => {
    for (const { name, sentAt, now } of isActive() ? await ledger.unsettledDomains() : []) {
      const last = checkedAt.get(name) ?? -Infinity
      const times = checkAfter.map((factor) => sentAt + factor * timeoutMs)
      const isDue = times.some((at) => last < at && at <= now)
      const domain = readDomain(name)
      if (!isDue || typeof domain === 'string' || queue.isBusy(domain)) continue
      checkedAt.set(name, now)
      queue.check(domain).catch((error: unknown) => {
        log.warn({ err: error, domain: name }, 'zone not checked, checking again')
        checkedAt.delete(name)
      })
    }
  }
  return new BackgroundTask({ run, clock, onError: (error) => log.warn({ err: error }, 'unsettled zones not found') })
}

interface SweepOptions extends Pick<ZoneDependencies, 'ledger' | 'registrar' | 'isActive' | 'clock' | 'log'> {
  domains: { readonly managed: string[] }
  /** Each zone is read once within this time; 0: none is. */
  intervalMs: number
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
    const oldest = times.reduce((least, at) => Math.min(least, at), Infinity)
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
      return lastAt <= now - (isPending ? idleMs : intervalMs) ? [{ name, at: isPending ? 0 : lastAt }] : []
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
