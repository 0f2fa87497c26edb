import type { Domain } from '../dns/domain-name.ts'
import type { Zone } from '../dns/record.ts'
import { isSame } from './verified-write.ts'

interface Known {
  /** The zone as it was last written, or read to be written. */
  zone: Zone | undefined
  /** Writes that were given up without an answer, and may still be carried out. */
  givenUp: GivenUp[]
}

interface GivenUp {
  sent: Zone
  until: number
  /** Whether another zone was written after it, which it would undo. */
  isOutdated: boolean
}

interface Options {
  /** Milliseconds after which a call of the registrar is given up. */
  timeout: number
  /** Looks at a zone some time after a write to it was given up, and writes it anew where it must be. */
  check: (domain: Domain) => Promise<unknown>
}

/**
 * What each zone was when it was last written. The registrar may show an older zone again, out of date or because it
 * carries a write out late that was given up long before; what builds on that would lose what was written since. Known
 * in this process only, and of late writes for ten minutes.
 */
export class LateWriteGuard {
  readonly #options: Options
  readonly #known = new Map<string, Known>()
  readonly #checks = new Set<NodeJS.Timeout>()

  constructor(options: Options) {
    this.#options = options
  }

  /** The zone is now so, and was answered so. */
  put({ name }: Domain, zone: Zone) {
    const givenUp = this.#givenUp(name).map((each) => ({ ...each, isOutdated: true }))
    this.#known.delete(name)
    this.#known.set(name, { zone, givenUp })
    const [oldest] = this.#known.keys()
    if (this.#known.size > mostKnown && oldest !== undefined) this.#known.delete(oldest)
  }

  /** Whether a zone is another than it was: somebody has changed it, or the registrar is out of date. */
  isNew({ name }: Domain, found: Zone): boolean {
    const zone = this.#known.get(name)?.zone
    return zone !== undefined && !isSame(found, zone)
  }

  /** A write of this zone was given up, and is not done yet. */
  expectLate(domain: Domain, sent: Zone) {
    const until = performance.now() + longest
    const givenUp = [...this.#givenUp(domain.name), { sent, until, isOutdated: false }]
    const zone = this.#known.get(domain.name)?.zone
    this.#known.set(domain.name, { zone, givenUp: givenUp.slice(-mostGivenUp) })
    for (const factor of checkAfter) this.#checkAfter(factor, domain)
  }

  /** Whether a late write has put this zone there over a later one. */
  isLate({ name }: Domain, found: Zone): boolean {
    return this.#givenUp(name).some((each) => each.isOutdated && isSame(found, each.sent))
  }

  /** The zone as it should be: as it was found, or as it was before a late write. */
  restore(domain: Domain, found: Zone): Zone {
    const known = this.#known.get(domain.name)
    if (!known?.zone || !this.isNew(domain, found)) return found
    if (this.isLate(domain, found)) return known.zone
    known.zone = found
    return found
  }

  close() {
    for (const check of this.#checks) clearTimeout(check)
  }

  #givenUp(name: string): GivenUp[] {
    const now = performance.now()
    return (this.#known.get(name)?.givenUp ?? []).filter(({ until }) => until > now)
  }

  #checkAfter(factor: number, domain: Domain) {
    const check = setTimeout(() => {
      this.#checks.delete(check)
      // Else there is nothing that a late write could undo.
      if (!this.#givenUp(domain.name).some(({ isOutdated }) => isOutdated)) return
      this.#options.check(domain).catch(() => this.#checkAfter(factor, domain))
    }, factor * this.#options.timeout).unref()
    this.#checks.add(check)
  }
}

const longest = 600_000
const mostGivenUp = 20
const mostKnown = 2_000
// In time limits of a call: servers give up on a request after one or two minutes at most.
const checkAfter = [2, 8]
