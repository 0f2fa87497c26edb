import { LRUCache } from 'lru-cache'
import type { OpenBlob } from '../blobs/blob-reader.ts'
import { LruLoader } from './lru-loader.ts'

// Several times what a socket buffers, and a part of that where memory is scarce.
export const chunkBytes = 256 * 1024
const scarceChunkBytes = 16 * 1024

/** A content to send in chunks, open until it is disposed of. */
export interface LargeContent {
  blob: OpenBlob
  /** Identifies its bytes. */
  key: string
  isCached: boolean
  memory: ChunkMemory
}

/** Bytes of a content; they do not change until they are released, once. */
export interface Chunk {
  bytes: Buffer
  release: () => void
}

/**
 * The chunks of contents that are too large to be cached as one buffer. However many clients do not read, they hold little:
 * once all responses together hold `maxHeldBytes`, new chunks are small. Chunks of contents that are requested again are
 * cached; one large download evicts nothing.
 */
export class ChunkMemory {
  readonly cache: LruLoader<Buffer>
  readonly #maxCachedBytes: number
  readonly #maxHeldBytes: number
  readonly #requested = new LRUCache<string, true>({ max: 64 })
  // New buffers took an eighth of the time of a large file.
  readonly #unused: Buffer[] = []
  #heldBytes = 0

  constructor(maxCachedBytes: number, maxHeldBytes = defaultHeldBytes) {
    this.cache = new LruLoader(maxCachedBytes, (chunk) => chunk.length)
    this.#maxCachedBytes = maxCachedBytes
    this.#maxHeldBytes = maxHeldBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Whether responses should hold as little as possible. */
  get isScarce(): boolean {
    return this.#heldBytes >= this.#maxHeldBytes
  }

  /** A content that is requested; it is cached from its second request on. */
  request(blob: OpenBlob, key: string): LargeContent {
    // A store that fetches whole ranges in one request is not asked for single chunks.
    const canBeCached = blob.size <= this.#maxCachedBytes && !blob.expect
    const isCached = canBeCached && this.#requested.has(key)
    if (canBeCached) this.#requested.set(key, true)
    return { blob, key, isCached, memory: this }
  }

  /** The next of the bytes from `start` to `end`, as many as memory allows. */
  async acquire(content: LargeContent, start: number, end: number): Promise<Chunk> {
    const { blob, isCached } = content
    // Up to a multiple of their size, as they are cached.
    const full = Math.min(chunkBytes - (start % chunkBytes), end - start)
    const length = this.isScarce ? Math.min(scarceChunkBytes, full) : full
    const isReused = !isCached && length === chunkBytes
    const own = isReused ? (this.#unused.pop() ?? Buffer.allocUnsafeSlow(chunkBytes)) : undefined
    const release = () => {
      this.#heldBytes -= length
      if (own && this.#unused.length < maxUnused) this.#unused.push(own)
    }
    this.#heldBytes += length
    try {
      const bytes = isCached
        ? await this.#readCached(content, start, length)
        : await blob.read(start, length, own)
      if (bytes.length < length) throw new Error('it has become shorter since it was opened')
      return { bytes, release }
    } catch (error) {
      release()
      throw error
    }
  }

  async #readCached({ blob, key }: LargeContent, start: number, length: number): Promise<Buffer> {
    const within = start % chunkBytes
    const from = start - within
    const load = () => blob.read(from, Math.min(chunkBytes, blob.size - from))
    const chunk = (await this.cache.get(`${key}@${from}`, load)) ?? (await load())
    if (chunk.length === length) return chunk
    // A view would keep the whole chunk in memory after its eviction.
    return Buffer.from(chunk.subarray(within, within + length))
  }
}

const defaultHeldBytes = 32 * 1024 * 1024
const maxUnused = 8
