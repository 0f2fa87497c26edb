import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib'
import type { Logger } from '@domains-and-files/http'
import { LRUCache } from 'lru-cache'
import type { FileRow } from '../catalog/tables.ts'
import { isCompressible } from '../files/media-type.ts'
import { type CompressedCoding, type ContentCoding, compressedCodings } from '../rfc9110/content-codings.ts'
import type { BlobStore } from './blob-store.ts'

interface Compressible extends Pick<FileRow, 'digest' | 'size' | 'contentType'> {
  /** Forms that the listener knows. */
  known?: readonly ContentCoding[]
}

interface Dependencies {
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
  readonly #dependencies: Dependencies
  readonly #waiting = new Map<string, Compressible>()
  /** Forms that are not smaller than the file. They depend on the bytes alone, so entries never expire. */
  readonly #useless = new LRUCache<string, true>({ max: 10_000 })
  /** Called with the digest of each blob that has a form that is not known, perhaps from another replica. */
  onForm: (digest: string) => void = () => undefined
  #running: Promise<void> | undefined
  readonly #closing = new AbortController()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Queues a file unless it is queued, not compressible or too large, or the queue is full. Never throws. */
  readonly enqueue = (file: Compressible): void => {
    if (this.#closing.signal.aborted || this.#waiting.size >= maxQueued) return
    if (file.size < minBytes || file.size > maxBytes || !isCompressible(file.contentType)) return
    this.#waiting.set(file.digest, file)
    this.#running ??= this.#work()
  }

  /** Removes a damaged form; the next request for it queues the file again. Never throws. */
  async discard(digest: string, form: CompressedCoding) {
    const { store, log } = this.#dependencies
    log.error({ digest, form }, 'compressed form damaged')
    await store.dropForm(digest, form).catch((err) => log.error({ err, digest, form }, 'compressed form not removed'))
  }

  get waiting(): number {
    return this.#waiting.size
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
    const { log, retryMs = 10_000 } = this.#dependencies
    for (const [digest, file] of this.#waiting) {
      this.#waiting.delete(digest)
      try {
        await this.#compress(file)
      } catch (error) {
        log.warn({ err: error, digest }, 'file not compressed')
        this.enqueue(file)
        await wait(retryMs, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    this.#running = undefined
  }

  async #compress({ digest, known = [] }: Compressible) {
    const { store, log } = this.#dependencies
    await using blob = await store.open(digest)
    if (!blob) return // Deleted meanwhile.
    let bytes: Buffer | undefined
    for (const form of compressedCodings) {
      if (this.#closing.signal.aborted) return
      const key = `${digest}.${form}`
      if (this.#useless.has(key) || known.includes(form)) continue
      if ((await store.formSize(digest, form)) === undefined) {
        bytes ??= await blob.read(0, blob.size)
        if (hash('sha256', bytes) !== digest) return log.warn({ digest }, 'content damaged')
        const compressed = await compress[form](bytes)
        if (compressed.length >= bytes.length) {
          this.#useless.set(key, true)
          continue
        }
        await store.putForm(digest, form, compressed)
      }
      this.onForm(digest)
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

const compress: Record<CompressedCoding, (bytes: Buffer) => Promise<Buffer>> = {
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
