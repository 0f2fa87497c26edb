import type { Domain } from './domain.ts'
import type { Zone } from './record.ts'
import { isSame } from './safe-write.ts'

interface Known {
  /** The zone as it was last written, or read to be written. */
  zone: Zone | undefined
  /** Writes that were given up without an answer, and may still be carried out. */
  givenUp: { sent: Zone; until: number }[]
  isWritten: boolean
}

interface Options {
  /** Milliseconds after which a call of the registrar is given up. */
  timeout: number
  /** Asked, some time after a write was given up, to look at the zone and to write it anew where it must be. */
  onCheck: (domain: Domain) => void
}

/**
 * What each zone was when it was last written. The registrar may show an older zone again, out of date or because it
 * carries a write out late that was given up long before; what builds on that would lose what was written since. Known
 * in this process only, and of late writes for ten minutes.
 */
export class LastKnown {
  readonly #options: Options
  readonly #known = new Map<string, Known>()
  readonly #checks = new Set<NodeJS.Timeout>()

  constructor(options: Options) {
    this.#options = options
  }

  /** The zone is now so, and was answered so. */
  put({ name }: Domain, zone: Zone) {
    const givenUp = this.#known.get(name)?.givenUp ?? []
    this.#known.delete(name)
    this.#known.set(name, { zone, givenUp, isWritten: true })
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
    const { zone, givenUp = [] } = this.#known.get(domain.name) ?? {}
    const until = performance.now() + longest
    const all = [...givenUp, { sent, until }].slice(-mostGivenUp)
    this.#known.set(domain.name, { zone, givenUp: all, isWritten: false })
    for (const factor of checkAfter) {
      const check = setTimeout(() => {
        this.#checks.delete(check)
        // Else there is nothing that a late write could undo.
        if (this.#known.get(domain.name)?.isWritten) this.#options.onCheck(domain)
      }, factor * this.#options.timeout).unref()
      this.#checks.add(check)
    }
  }

  /** The zone as it should be: as it was found, unless a late write has put that there over a later one. */
  restore({ name }: Domain, found: Zone): Zone {
    const known = this.#known.get(name)
    if (!known?.zone || isSame(found, known.zone)) return found
    known.givenUp = known.givenUp.filter(({ until }) => until > performance.now())
    if (known.isWritten && known.givenUp.some(({ sent }) => isSame(found, sent))) return known.zone
    known.zone = found
    return found
  }

  close() {
    for (const check of this.#checks) clearTimeout(check)
  }
}

const longest = 600_000
const mostGivenUp = 20
const mostKnown = 2_000
// In time limits of a call: servers give up on a request after one or two minutes at most.
const checkAfter = [2, 8]
