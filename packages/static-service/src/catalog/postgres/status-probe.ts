import { Probe } from '@domains-and-files/persistence'
import type { CatalogStatus, Totals } from '../catalog.ts'

type Seen = Pick<CatalogStatus, 'totals' | 'newestVersion'>

type Read = () => Promise<Totals & { newestVersion: string | null }>

const intervalMs = 2000

/** Counters for health checks and metrics, read in the background: they may be two seconds old. */
export class StatusProbe {
  readonly #probe: Probe
  #seen: Seen

  /** Resolves when the counters have been read once. */
  static async start(read: Read): Promise<StatusProbe> {
    return new StatusProbe(read, split(await read()))
  }

  private constructor(read: Read, seen: Seen) {
    this.#seen = seen
    this.#probe = new Probe({
      check: async () => {
        this.#seen = split(await read())
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
