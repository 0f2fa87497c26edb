import type { Logger } from '@domains-and-files/http'
import type { Clock } from '../clock.ts'
import { nameOf, type Row, type Zone } from '../dns/record.ts'
import type { Ledger } from '../ledger/ledger.ts'

interface Options {
  ledger: Ledger
  clock: Clock
  log: Logger
  /** Dynamic records that other tools own. */
  ignore: RecordPattern[]
}

/** Compares every zone that is read with the one that the ledger knows, and records what was changed outside. */
export class OutsideChanges {
  readonly #options: Options
  #running = Promise.resolve()
  /** How many changes were recorded. */
  count = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** Compares in the background, in the order of the reads. */
  observe(zone: Zone, readAt: number): void {
    if (zone.usesRegistrarDns) this.#running = this.#running.then(() => this.#compare(zone, readAt))
  }

  /** Resolves when all zones that were read are compared. */
  get idle(): Promise<void> {
    return this.#running
  }

  async #compare(zone: Zone, readAt: number): Promise<void> {
    const { ledger, clock, log, ignore } = this.#options
    const isIgnored = (row: Row, domain: string) =>
      ignore.some((matches) => matches(domain, nameOf(row, domain), row.type))
    try {
      const ageMs = clock.now() - readAt
      const change = await ledger.knownZones.compare(zone, { ageMs, isIgnored })
      if (change === undefined) return
      this.count++
      log.warn({ domain: zone.domain, change }, 'zone changed outside')
    } catch (error) {
      log.warn({ err: error, domain: zone.domain }, 'zone not compared with the last known one')
    }
  }
}

/** Whether it names the RRset; `name` is relative to the domain, `@` for the domain itself. */
export type RecordPattern = (domain: string, name: string, type: string) => boolean

/** Parses a list of `fqdn:TYPE` and `domain:name:TYPE` with `*` in each part; undefined for anything else. */
export function parseRecordPatterns(text: string): RecordPattern[] | undefined {
  const entries = text.split(',').map((entry) => entry.trim())
  const patterns = entries
    .filter((entry) => entry !== '')
    .map((entry) => {
      const parts = entry.split(':')
      if (parts.some((part) => !/^[\w.*@-]+$/.test(part))) return undefined
      const [first, second, third] = parts.map(toExpression)
      if (!first || !second || parts.length > 3) return undefined
      const isRrset: RecordPattern = (domain, name, type) =>
        third
          ? first.test(domain) && second.test(name) && third.test(type)
          : first.test(name === '@' ? domain : `${name}.${domain}`) && second.test(type)
      return isRrset
    })
  return patterns.every((pattern) => pattern !== undefined) ? patterns : undefined
}

/** Compares with a pattern in which `*` stands for any characters; case does not matter. */
const toExpression = (pattern: string) => {
  const [first = '', ...others] = pattern.toLowerCase().split('*')
  const last = others.pop()
  const test = (text: string): boolean => {
    const name = text.toLowerCase()
    if (last === undefined) return name === first
    let at = first.length
    for (const part of others) {
      const found = name.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return name.startsWith(first) && name.endsWith(last) && name.length - last.length >= at
  }
  return { test }
}
