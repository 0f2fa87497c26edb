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

interface Held {
  name: string
  bytes: Promise<Buffer>
  length: number
  users: number
  /** A buffer to be used again. */
  own: Buffer | undefined
}

/**
 * The chunks of contents that are too large to be cached as one buffer. However many clients do not read, all responses
 * together hold at most `maxHeldBytes`: those at the same place share a chunk, beyond half of the limit new chunks are small,
 * and at the limit a response waits until others have been read. Chunks of contents that are requested again are cached;
 * one large download evicts nothing.
 */
export class ChunkMemory {
  readonly cache: LruLoader<Buffer>
  readonly #maxCachedBytes: number
  readonly #maxHeldBytes: number
  readonly #requested = new LRUCache<string, true>({ max: 64 })
  readonly #held = new Map<string, Held>()
  readonly #waiting: { length: number; proceed: () => void }[] = []
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
    return this.#heldBytes > this.#maxHeldBytes / 2
  }

  /** A content that is requested; it is cached from its second request on. */
  request(blob: OpenBlob, key: string): LargeContent {
    // A store that fetches whole ranges in one request is not asked for single chunks.
    const canBeCached = blob.size <= this.#maxCachedBytes && !blob.expect
    const isCached = canBeCached && this.#requested.has(key)
    if (canBeCached) this.#requested.set(key, true)
    return { blob, key, isCached, memory: this }
  }

  /** The next of the bytes from `start` to `end`, as many as memory allows; may wait for it. */
  async acquire(content: LargeContent, start: number, end: number): Promise<Chunk> {
    // Up to a multiple of their size, so that responses meet at the same chunks.
    const full = Math.min(chunkBytes - (start % chunkBytes), end - start)
    const name = nameOf(content, start, full)
    const isSmall = this.isScarce && !this.#held.has(name) && !this.cache.inspect(name)
    const length = isSmall ? Math.min(scarceChunkBytes, full) : full
    const shared = this.#held.get(nameOf(content, start, length))
    if (shared) return this.#use(shared)
    if (this.#waiting.length === 0 && this.#fits(length)) {
      this.#heldBytes += length
      return this.#use(this.#load(content, start, length))
    }
    await new Promise<void>((proceed) => this.#waiting.push({ length, proceed }))
    const loaded = this.#held.get(nameOf(content, start, length))
    if (!loaded) return this.#use(this.#load(content, start, length))
    this.#free(length)
    return this.#use(loaded)
  }

  async #use(held: Held): Promise<Chunk> {
    held.users += 1
    try {
      const bytes = await held.bytes
      if (bytes.length < held.length) throw new Error('it has become shorter since it was opened')
      return { bytes, release: () => this.#release(held) }
    } catch (error) {
      this.#release(held)
      throw error
    }
  }

  #load(content: LargeContent, start: number, length: number): Held {
    const { blob, isCached } = content
    const name = nameOf(content, start, length)
    const isWhole = start % chunkBytes === 0 && length === Math.min(chunkBytes, blob.size - start)
    const isReused = !isCached && length === chunkBytes
    const own = isReused ? (this.#unused.pop() ?? Buffer.allocUnsafeSlow(chunkBytes)) : undefined
    const read = () => blob.read(start, length, own)
    const bytes = isCached && isWhole ? this.#readCached(name, read) : read()
    const held = { name, bytes, length, users: 0, own }
    // A download of a whole range goes on with its own next bytes only.
    if (!blob.expect) this.#held.set(name, held)
    return held
  }

  async #readCached(name: string, read: () => Promise<Buffer>): Promise<Buffer> {
    return (await this.cache.get(name, read)) ?? read()
  }

  #release(held: Held) {
    held.users -= 1
    if (held.users > 0) return
    if (this.#held.get(held.name) === held) this.#held.delete(held.name)
    if (held.own && this.#unused.length < maxUnused) this.#unused.push(held.own)
    this.#free(held.length)
  }

  // First come, first served.
  #free(length: number) {
    this.#heldBytes -= length
    for (let next = this.#waiting[0]; next && this.#fits(next.length); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#heldBytes += next.length
      next.proceed()
    }
  }

  #fits(length: number): boolean {
    return this.#heldBytes === 0 || this.#heldBytes + length <= this.#maxHeldBytes
  }
}

const defaultHeldBytes = 64 * 1024 * 1024
const maxUnused = 8

const nameOf = ({ key }: LargeContent, start: number, length: number) => `${key}@${start}+${length}`
