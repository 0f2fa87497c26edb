import type { Catalog } from '../../catalog/catalog.ts'
import { LruLoader } from '../../serving/lru-loader.ts'
import type { DescribeFiles } from './file-schema.ts'

/** File record as sent: its entity tag and its JSON. */
export interface CachedRecord {
  etag: string
  json: string
}

interface Dependencies {
  catalog: Catalog
  describe: DescribeFiles
  memoryBytes: number
}

/**
 * LRU cache of serialized file records, bounded in bytes. Never stale: the catalog reports a change, and its entry is
 * invalidated, before the change is answered. Empty where other processes change the catalog, too.
 */
export class FileRecordCache {
  readonly #dependencies: Dependencies
  readonly #records: LruLoader<CachedRecord>

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    const { memoryBytes, catalog } = dependencies
    this.#records = new LruLoader(memoryBytes, ({ etag, json }) => etag.length + json.length)
    catalog.onChange((paths) => this.#records.invalidate(paths))
  }

  /** For the cache metrics. */
  get memory() {
    return this.#records
  }

  clear() {
    this.#records.invalidate('all')
  }

  peek(path: string): CachedRecord | undefined {
    return this.#records.peek(path)
  }

  find(path: string): CachedRecord | undefined | Promise<CachedRecord | undefined> {
    // What another process may have changed is not cached.
    if (!this.#dependencies.catalog.isExclusive) return this.#read(path)
    return this.#records.get(path, () => this.#read(path))
  }

  async #read(path: string): Promise<CachedRecord | undefined> {
    const { catalog, describe } = this.#dependencies
    const row = await catalog.find(path)
    const [file] = row ? await describe([row]) : []
    return file && { etag: file.etag(), json: JSON.stringify(file.record) }
  }
}
