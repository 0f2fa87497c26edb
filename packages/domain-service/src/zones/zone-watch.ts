import { posix } from 'node:path'
import { BackgroundTask } from '@domains-and-files/persistence'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'

interface CheckOptions extends ZoneDependencies {
  queue: { isBusy(domain: Domain): boolean; check(domain: Domain): Promise<void> }
}

// In call timeouts: most servers give up a request after one or two minutes; the last check is for slower ones.
const checkAfter = [2, 8, 24]

/**
 * Reads zones in the background whose sends have no final outcome, or may be overwritten by a late write: some times after
 * the last send of the domain, and those that ended processes left also at once. The ledger knows them.
 */
export function checkZones({ ledger, clock, log, timeoutMs, isActive, queue }: CheckOptions): BackgroundTask {
  const checkedAt = new Map<string, number>()
  let isStarting = true
  const run = async () => {
    for (const { name, sentAt, now } of isActive() ? await ledger.unsettledDomains() : []) {
      const last = checkedAt.get(name) ?? -Infinity
      const times = checkAfter.map((factor) => sentAt + factor * timeoutMs)
      const isDue = isStarting || times.some((at) => last < at && at <= now)
      const domain = readDomain(name)
      if (!isDue || typeof domain === 'string' || queue.isBusy(domain)) continue
      checkedAt.set(name, now)
      queue.check(domain).catch((error: unknown) => {
        log.warn({ err: error, domain: name }, 'zone not checked, checking again')
        checkedAt.delete(name)
      })
    }
    isStarting = !isActive() // What another process leaves until this one is active again is checked at once, too.
  }
  return new BackgroundTask({ run, clock, onError: (error) => log.warn({ err: error }, 'unsettled zones not found') })
}

interface SweepOptions extends Pick<ZoneDependencies, 'ledger' | 'registrar' | 'isActive' | 'clock' | 'log'> {
  domains: { readonly managed: string[] }
  /** Each zone is read once within this time; 0: none is. */
  intervalMs: number
}

/** Between looks for zones that are due; also leaves the calls after a start to requests. */
const idleMs = 60_000

/**
 * Finds changes made outside: reads the zones that no request has read within the interval, the longest unread first. The
 * ledger knows when each was read, so that the sweep continues after a restart or on another replica.
 */
export class ZoneSweep {
  readonly #options: SweepOptions
  /** When this process last tried to read a domain: it may fail, or be on other nameservers. */
  readonly #triedAt = new Map<string, number>()
  readonly #task: BackgroundTask
  #isClosed = false

  constructor(options: SweepOptions) {
    const { clock, log } = options
    this.#options = options
    this.#task = new BackgroundTask({
      run: () => this.#run(),
      intervalMs: options.intervalMs > 0 ? idleMs : undefined,
      clock,
      onError: (error) => log.info({ err: error }, 'zones not swept'),
    })
  }

  /** Does not wait for a read under way, which may wait for a call: it ends with the registrar's client. */
  close() {
    this.#isClosed = true
    void this.#task.close()
  }

  /** Progress of the sweep: how many of the domains were read within the interval. */
  async state() {
    const { domains, intervalMs, clock, isActive, ledger } = this.#options
    const sightings = await ledger.knownZones.sightings()
    const seen = domains.managed.filter((name) => (sightings.get(name)?.readAt ?? 0) > clock.now() - intervalMs)
    return {
      interval_s: intervalMs / 1_000,
      is_active: intervalMs > 0 && isActive(),
      domains: domains.managed.length,
      seen: seen.length,
    }
  }

  // A failure ends the run: the registrar may be failing for all of them.
  async #run(): Promise<void> {
    const { registrar, isActive, clock } = this.#options
    while (!this.#isClosed && isActive()) {
      const name = await this.#findDue()
      if (name === undefined) return
      this.#triedAt.set(name, clock.now())
      const domain = readDomain(name)
      if (typeof domain === 'object') await registrar.zone(domain, 'sweep')
    }
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
