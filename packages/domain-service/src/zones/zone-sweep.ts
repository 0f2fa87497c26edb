import type { Logger } from '@domains-and-files/http'
import type { Clock, Timer } from '../clock.ts'
import { readDomain } from '../dns/domain-name.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RegistrarClient } from '../registrar/client.ts'

interface Options {
  ledger: Ledger
  registrar: Pick<RegistrarClient, 'zone'>
  /** The domains to read. */
  domains: { readonly managed: string[] }
  /** Each zone is read that often; 0: none. */
  intervalMs: number
  /** Whether this process is the one that sweeps. */
  isActive: () => boolean
  clock: Clock
  log: Logger
}

/** A start is followed by requests, which go first. */
const firstPauseMs = 60_000
const pauseMs = 2_000
const idleMs = 60_000

/**
 * Reads the zones that nobody else has read for a while, the longest unseen first, so that changes made outside are found.
 * The ledger knows when each was seen: a restart or another replica goes on there.
 */
export class ZoneSweep {
  readonly #options: Options
  /** When this process last tried to read a domain: it may fail, or be on other nameservers. */
  readonly #triedAt = new Map<string, number>()
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: Options) {
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

  /** How far it is: of the domains, those that were seen within the interval. */
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

  // First those of which a difference waits for a second read.
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
