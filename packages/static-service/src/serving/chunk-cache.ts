import { LRUCache } from 'lru-cache'
import type { OpenBlob } from '../blobs/blob-reader.ts'
import { LruLoader } from './lru-loader.ts'

// Several times what a socket buffers: see `readChunks`.
export const chunkBytes = 256 * 1024

/**
 * Chunks of contents that are too large to be cached as one buffer. A client that reads slowly keeps two chunks in memory,
 * not a content. Only contents that are requested again enter, so that one large download evicts nothing.
 */
export class ChunkCache {
  readonly memory: LruLoader<Buffer>
  readonly #maxBytes: number
  readonly #requested = new LRUCache<string, true>({ max: 64 })

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.memory = new LruLoader(maxBytes, (chunk) => chunk.length)
  }

  /** This content, read through the cache from its second request on. `key` identifies its bytes. */
  through(blob: OpenBlob, key: string): OpenBlob {
    // A store that fetches whole ranges in one request is not asked for single chunks.
    if (blob.size > this.#maxBytes || blob.expect) return blob
    if (this.#requested.has(key)) return new CachedBlob(blob, key, this.memory)
    this.#requested.set(key, true)
    return blob
  }
}

class CachedBlob implements OpenBlob {
  readonly size: number
  readonly stamp: string | undefined
  readonly isShared = true
  readonly #blob: OpenBlob
  readonly #key: string
  readonly #memory: LruLoader<Buffer>

  constructor(blob: OpenBlob, key: string, memory: LruLoader<Buffer>) {
    this.size = blob.size
    this.stamp = blob.stamp
    this.#blob = blob
    this.#key = key
    this.#memory = memory
  }

  async read(start: number, length: number, into?: Buffer): Promise<Buffer> {
    const isChunk =
      start % chunkBytes === 0 && length === Math.min(chunkBytes, this.size - start) && !into
    const load = () => this.#blob.read(start, length, into)
    const cached = isChunk ? this.#memory.get(`${this.#key}@${start}`, load) : load()
    return (await cached) ?? load()
  }

  [Symbol.asyncDispose]() {
    return this.#blob[Symbol.asyncDispose]()
  }
}
