import type { Catalog } from '../catalog/catalog.ts'
import { etagOf } from '../rfc9110/entity-tags.ts'
import { LruLoader } from '../serving/lru-loader.ts'
import { describe } from './file-schema.ts'

/** A file's record as it is answered: its entity tag, and its JSON. */
export interface WrittenRecord {
  etag: string
  json: string
}

interface Parts {
  catalog: Catalog
  publicBaseUrl: string | undefined
  memoryBytes: number
}

/**
 * The records of files, written out, in a bounded memory: to look one up, hash it for its tag, describe and
 * write it was a good part of each answer. Never stale: one is forgotten when the catalog tells of a change, which is before
 * the change is answered.
 */
export class FileRecordCache {
  readonly #parts: Parts
  readonly #kept: LruLoader<WrittenRecord>

  constructor(parts: Parts) {
    this.#parts = parts
    this.#kept = new LruLoader(parts.memoryBytes, ({ etag, json }) => etag.length + json.length)
    parts.catalog.onChange((paths) => {
      for (const path of paths) this.#kept.forget(path)
    })
  }

  /** For who counts. */
  get memory() {
    return this.#kept
  }

  /** What memory alone knows of the file that is at this path now. */
  recall(path: string): WrittenRecord | undefined {
    return this.#kept.peek(path)
  }

  /** The record of the file that is at this path now, if there is one. */
  find(path: string) {
    return this.#kept.get(path, async () => {
      const { catalog, publicBaseUrl } = this.#parts
      const row = await catalog.find(path)
      return row && { etag: etagOf(row), json: JSON.stringify(describe(row, publicBaseUrl)) }
    })
  }
}
