import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib'
import type { Logger } from '@domains-and-files/http'
import { LRUCache } from 'lru-cache'
import type { FileRow } from '../catalog/tables.ts'
import { isCompressible } from '../files/media-type.ts'
import { type ContentCoding, compressedCodings } from '../rfc9110/content-codings.ts'
import type { BlobStore } from './blob-store.ts'

export interface Compressible extends Pick<FileRow, 'digest' | 'size' | 'contentType'> {
  /** Forms that the listener knows. */
  known?: readonly ContentCoding[]
}

interface CompressorOptions {
  store: BlobStore
  log: Logger
  retryMs?: number
}

/** Smaller files fit in one packet uncompressed. */
export const minBytes = 1024

/**
 * Compresses stored files in the thread pool, one at a time, and stores each form that is smaller than the file. The
 * queue is in memory: after a restart, serving a file queues its missing forms. After a failure (such as a full disk)
 * the file is queued again and the queue pauses, since an attempt takes seconds of a core.
 */
export class Compressor {
  readonly #store: BlobStore
  readonly #log: Logger
  readonly #retryMs: number
  readonly #waiting = new Map<string, Compressible>()
  /** Forms that are not smaller than the file. They depend on the bytes alone, so entries never expire. */
  readonly #useless = new LRUCache<string, true>({ max: 10_000 })
  #listener: (digest: string) => void = () => undefined
  #running: Promise<void> | undefined
  readonly #closing = new AbortController()

  constructor({ store, log, retryMs = 10_000 }: CompressorOptions) {
    this.#store = store
    this.#log = log
    this.#retryMs = retryMs
  }

  /** Queues a file unless it is queued, not compressible or too large, or the queue is full. Never throws. */
  readonly enqueue = (file: Compressible): void => {
    const hasFittingSize = file.size >= minBytes && file.size <= maxBytes
    if (this.#closing.signal.aborted || !hasFittingSize || !isCompressible(file.contentType)) return
    if (this.#waiting.size >= maxQueued) return
    this.#waiting.set(file.digest, file)
    this.#running ??= this.#work()
  }

  /** Removes a damaged form; the next request for it queues the file again. Never throws. */
  async discard(digest: string, form: (typeof compressedCodings)[number]) {
    this.#log.error({ digest, form }, 'compressed form damaged')
    try {
      await this.#store.dropForm(digest, form)
    } catch (error) {
      this.#log.error({ err: error, digest, form }, 'compressed form not removed')
    }
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Calls `listener` with the digest of each blob that has a form that is not known, perhaps from another replica. */
  onForm(listener: (digest: string) => void) {
    this.#listener = listener
  }

  /** Resolves when the queue is empty and no compression runs. */
  async idle() {
    while (this.#running) await this.#running
  }

  /** Drops the queue; resolves when the running compression has ended. */
  async close() {
    this.#closing.abort()
    this.#waiting.clear()
    await this.#running
  }

  async #work() {
    const { signal } = this.#closing
    for (const [digest, file] of this.#waiting) {
      this.#waiting.delete(digest)
      try {
        await this.#compress(file)
      } catch (error) {
        this.#log.warn({ err: error, digest }, 'file not compressed')
        this.enqueue(file)
        await wait(this.#retryMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    this.#running = undefined
  }

  async #compress({ digest, known = [] }: Compressible) {
    await using blob = await this.#store.open(digest)
    if (!blob) return // Deleted meanwhile.
    let bytes: Buffer | undefined
    for (const form of compressedCodings) {
      if (this.#closing.signal.aborted) return
      const key = `${digest}.${form}`
      if (this.#useless.has(key) || known.includes(form)) continue
      if ((await this.#store.formSize(digest, form)) === undefined) {
        bytes ??= await blob.read(0, blob.size)
        if (hash('sha256', bytes) !== digest) return this.#log.warn({ digest }, 'content damaged')
        const compressed = await compress[form](bytes)
        if (compressed.length >= bytes.length) {
          this.#useless.set(key, true)
          continue
        }
        await this.#store.putForm(digest, form, compressed)
      }
      this.#listener(digest)
    }
  }
}

// Bounds the memory: a file is compressed whole.
const maxBytes = 16 * 1024 * 1024
const maxQueued = 10_000

// Up to this size the strongest level takes at most two seconds, once per blob.
const smallBytes = 1024 * 1024
const compressBrotli = promisify(brotliCompress)
const compressZstd = promisify(zstdCompress)
const compressGzip = promisify(gzip)
const chunkSize = 64 * 1024

const compress: Record<(typeof compressedCodings)[number], (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) =>
    compressBrotli(bytes, {
      chunkSize,
      params: {
        [constants.BROTLI_PARAM_QUALITY]: bytes.length <= smallBytes ? 11 : 9,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  // Level 19 has a window of at most 8 MiB, the limit for browsers (RFC 9659). With the size pledged, the window is no
  // larger than the file.
  zstd: (bytes) =>
    compressZstd(bytes, {
      chunkSize,
      pledgedSrcSize: bytes.length,
      params: { [constants.ZSTD_c_compressionLevel]: bytes.length <= smallBytes ? 19 : 9 },
    }),
  gzip: (bytes) => compressGzip(bytes, { chunkSize, level: 9 }),
}
