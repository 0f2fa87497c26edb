import { HttpError, type RawBody } from '@domains-and-files/http'
import type { OpenBlob } from '@domains-and-files/persistence'
import { LRUCache } from 'lru-cache'
import type { Piece } from '../rfc9110/byte-ranges.ts'

/** The bytes of a representation: in memory if small, else an open blob, which the caller disposes of. */
export type Content = Buffer | LargeContent

export function joinPieces(content: Buffer, pieces: Piece[]): Buffer {
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/**
 * Streams the pieces of a blob in chunks; a chunk is valid until the next call of `next`. Reads the first chunk before
 * any header is sent. Closes the blob after the last chunk, after a failure, and on `return`.
 */
export async function openStream(content: LargeContent, pieces: Piece[]) {
  const chunks = sendChunks(content, pieces)
  await chunks.next()
  return {
    next: () => chunks.next(),
    return: () => chunks.return(),
    get isScarce() {
      return content.memory.isScarce
    },
  } satisfies RawBody
}

// Unless memory is scarce, reads one chunk ahead, so that the disk works while the socket drains.
async function* sendChunks(content: LargeContent, pieces: Piece[]): AsyncGenerator<Buffer, void> {
  await using _closed = content.blob
  const chunks = readChunks(content, pieces)
  let ahead: Promise<IteratorResult<Chunk, void>> | undefined = chunks.next()
  try {
    await ahead
    yield Buffer.alloc(0) // For `openStream`.
    for (;;) {
      const { value: chunk } = await (ahead ?? chunks.next())
      ahead = undefined
      if (!chunk) return
      try {
        if (!content.memory.isScarce) ahead = chunks.next()
        ahead?.catch(() => undefined) // Thrown by the next round.
        yield chunk.bytes
      } finally {
        chunk.release()
      }
    }
  } finally {
    // Closing the descriptor must wait for a running read.
    const unread = await ahead?.catch(() => undefined)
    unread?.value?.release()
  }
}

async function* readChunks(content: LargeContent, pieces: Piece[]): AsyncGenerator<Chunk, void> {
  const { blob, memory } = content
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) {
      yield { bytes: piece, release: () => undefined }
      continue
    }
    blob.expect?.(piece.start, piece.end)
    for (let at = piece.start; at < piece.end; ) {
      const chunk = await memory.acquire(content, at, piece.end)
      at += chunk.bytes.length
      yield chunk
    }
  }
}

// Several times the buffer of a socket; smaller chunks once memory is scarce.
export const chunkBytes = 256 * 1024
const scarceChunkBytes = 16 * 1024

/** A blob that is sent in chunks; open until disposed of. */
export interface LargeContent {
  blob: OpenBlob
  key: string
  isCached: boolean
  memory: ChunkMemory
}

/** Bytes of a blob, unchanged until the caller releases them, once. */
interface Chunk {
  bytes: Buffer
  release: () => void
}

/**
 * Chunks of blobs that are too large to cache as one buffer. Bounds the memory that slow clients hold: once all
 * responses together hold `maxHeldBytes`, new chunks are 16 KiB. A blob's chunks are cached from its second request on,
 * so a single large download evicts nothing.
 */
export class ChunkMemory {
  readonly cache: LruLoader<Buffer>
  readonly #maxCachedBytes: number
  readonly #maxHeldBytes: number
  readonly #requested = new LRUCache<string, true>({ max: 64 })
  // Free list: allocating a buffer per chunk took an eighth of the time of a large download.
  readonly #unused: Buffer[] = []
  /** Of chunks that were acquired and not yet released. */
  heldBytes = 0

  constructor(maxCachedBytes: number, maxHeldBytes = 32 * 1024 * 1024) {
    this.cache = new LruLoader(maxCachedBytes, (chunk) => chunk.length)
    this.#maxCachedBytes = maxCachedBytes
    this.#maxHeldBytes = maxHeldBytes
  }

  /** Whether responses hold `maxHeldBytes` or more: then chunks are small and none is read ahead. */
  get isScarce(): boolean {
    return this.heldBytes >= this.#maxHeldBytes
  }

  /** Call once per request: a blob is cached from its second request on. */
  request(blob: OpenBlob, key: string): LargeContent {
    // `expect`: the store fetches a range in one request, so single chunks would cost more.
    const canBeCached = blob.size <= this.#maxCachedBytes && !blob.expect
    const isCached = canBeCached && this.#requested.has(key)
    if (canBeCached) this.#requested.set(key, true)
    return { blob, key, isCached, memory: this }
  }

  async acquire(content: LargeContent, start: number, end: number): Promise<Chunk> {
    const { blob, key, isCached } = content
    // Chunks end at multiples of their size, as in the cache.
    const full = Math.min(chunkBytes - (start % chunkBytes), end - start)
    const length = this.isScarce ? Math.min(scarceChunkBytes, full) : full
    const isReused = !isCached && length === chunkBytes
    const own = isReused ? (this.#unused.pop() ?? Buffer.allocUnsafeSlow(chunkBytes)) : undefined
    const release = () => {
      this.heldBytes -= length
      if (own && this.#unused.length < maxUnused) this.#unused.push(own)
    }
    this.heldBytes += length
    try {
      const bytes = isCached ? await this.#readCached(content, start, length) : await blob.read(start, length, own)
      if (bytes.length < length) throw new Error('it has become shorter since it was opened')
      return { bytes, release }
    } catch (cause) {
      release()
      if (cause instanceof HttpError) throw cause
      const failure = new Error(`the blob ${key} cannot be read`, { cause })
      throw Object.assign(failure, { code: Object(cause).code })
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

const maxUnused = 8

/** Undefined: there is none. */
export type Loaded<Value> = Value | undefined | Promise<Value | undefined>

/**
 * LRU cache bounded in bytes; coalesces concurrent loads. After `invalidate` it never returns what was loaded before: a
 * load that began earlier resolves for its callers only.
 */
export class LruLoader<Value extends object> {
  readonly #cached: LRUCache<string, Value, () => Promise<Value | undefined>>
  /** Cache hits, and misses that had to load. */
  readonly counts = { hit: 0, miss: 0 }

  constructor(maxBytes: number, sizeOf: (value: Value) => number) {
    this.#cached = new LRUCache({
      maxSize: Math.max(maxBytes, entryBytes), // No entry is so small, but loads under way are.
      sizeCalculation: (value, key) => entryBytes + key.length + sizeOf(value),
      fetchMethod: async (_key, _stale, { context: load }) => (await load()) ?? Promise.reject(absent),
      ignoreFetchAbort: true, // A load that was invalidated still resolves.
    })
  }

  /** The cached or loaded value. A missing one is not cached. `loadNow`: tried before `load`, synchronously. */
  get(key: string, load: () => Promise<Value | undefined>, loadNow?: () => Value | undefined): Loaded<Value> {
    const cached = this.peek(key)
    if (cached) return cached
    this.counts.miss += 1
    const value = loadNow?.()
    if (value) this.#cached.set(key, value)
    return value ?? this.#cached.fetch(key, { context: load }).catch(undefinedIfAbsent)
  }

  /** The cached value. Counts a hit. */
  peek(key: string): Value | undefined {
    const cached = this.#cached.get(key)
    if (cached) this.counts.hit += 1
    return cached
  }

  set(key: string, value: Value) {
    this.#cached.set(key, value)
  }

  get bytes(): number {
    return this.#cached.calculatedSize
  }

  /** Drops the values of these keys, or of all. */
  readonly invalidate = (keys: readonly string[] | 'all'): void => {
    if (keys === 'all') this.#cached.clear()
    else for (const key of keys) this.#cached.delete(key)
  }
}

// Rejected, since the cache rejects an undefined value whose entry it has dropped while it was loaded.
const absent = new Error('absent')

function undefinedIfAbsent(error: unknown): undefined {
  if (error !== absent) throw error
}

// Estimated overhead of an entry: its objects, its place in the list.
const entryBytes = 512
