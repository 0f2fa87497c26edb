import type { Zone } from '../dns/record.ts'
import { type CacheOptions, ResponseCache } from '../registrar/response-cache.ts'

/** What other processes have written. */
export interface ZoneVersions {
  /** False once after each write of another process. @throws where that cannot be known. */
  isCurrent(domain: string): Promise<boolean>
  /** This process has cached the zone as its own send left it. */
  recordPut(domain: string): void
  recordDrop(domain: string): void
}

type ReadOptions = Parameters<ResponseCache<Zone>['read']>[2]

/** Zones by domain. With `versions`, a write of another process is seen by every later read. */
export class ZoneCache {
  readonly #cache: ResponseCache<Zone>
  readonly #versions: ZoneVersions | undefined

  constructor(options: CacheOptions, versions?: ZoneVersions) {
    this.#cache = new ResponseCache(options)
    this.#versions = versions
  }

  async read(domain: string, load: () => Promise<Zone>, options: ReadOptions) {
    if (this.#versions && !(await this.#versions.isCurrent(domain))) this.#cache.drop(domain)
    return this.#cache.read(domain, load, options)
  }

  put(domain: string, zone: Zone) {
    this.#cache.put(domain, zone)
    this.#versions?.recordPut(domain)
  }

  drop(domain: string) {
    this.#cache.drop(domain)
    this.#versions?.recordDrop(domain)
  }

  /** Hits, misses and stale answers. */
  get counts() {
    return this.#cache.counts
  }
}
