import { Probe } from '@domains-and-files/persistence'
import type { CatalogStatus, Totals } from '../catalog.ts'

type Seen = Pick<CatalogStatus, 'totals' | 'newestVersion'>

type Read = () => Promise<Totals & { newestVersion: string | null }>

const intervalMs = 2000

/** Counters for health checks and metrics, read in the background: they may be two seconds old. */
export class StatusProbe {
  readonly #probe: Probe
  #seen: Seen
  #addedVersions = 0

  /** Resolves when the counters have been read once. */
  static async start(read: Read): Promise<StatusProbe> {
    return new StatusProbe(read, split(await read()))
  }

  private constructor(read: Read, seen: Seen) {
    this.#seen = seen
    this.#probe = new Probe({
      check: async () => {
        const added = this.#addedVersions
        const seen = split(await read())
        // A version that was added meanwhile may be newer than what was read.
        const isOlder = added !== this.#addedVersions
        this.#seen = isOlder ? { ...seen, newestVersion: this.#seen.newestVersion } : seen
      },
      intervalMs,
      onChange: (isAvailable) => {
        if (!isAvailable) this.#seen = { ...this.#seen, totals: undefined }
      },
    })
  }

  get seen(): Seen {
    return this.#seen
  }

  /** Makes a version that this process has recorded known at once. */
  addVersion(newestVersion: string): void {
    this.#addedVersions += 1
    this.#seen = { ...this.#seen, newestVersion }
  }

  close(): Promise<void> {
    return this.#probe.close()
  }
}

const split = ({ newestVersion, ...totals }: Totals & { newestVersion: string | null }): Seen => ({
  totals,
  newestVersion,
})
