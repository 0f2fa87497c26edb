import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib'
import type { Logger } from '@domains-and-files/http'
import { LRUCache } from 'lru-cache'
import type { FileRow } from '../files/file-record.ts'
import { isCompressible } from '../files/media-type.ts'
import { encodedForms } from './blob-path.ts'
import type { OpenBlob } from './blob-reader.ts'
import type { BlobStore } from './blob-store.ts'

/** What the compressor must know of a file. */
export type Compressible = Pick<FileRow, 'digest' | 'size' | 'contentType'>

/** Smaller files gain nothing that a packet would notice. */
export const minBytes = 1024

/**
 * Makes the compressed forms of stored files, one at a time and off the main thread, and keeps those that are smaller
 * than the file. Its queue is not durable: what is lost with it is asked for again when the file is served.
 */
export class Compressor {
  readonly #store: BlobStore
  readonly #log: Logger
  readonly #mostBytes: number
  readonly #waiting = new Map<string, Compressible>()
  // Forms that came out no smaller: a property of the bytes, so it never has to be forgotten.
  readonly #vain = new LRUCache<string, true>({ max: 10_000 })
  #listener: (digest: string) => void = () => undefined
  #running: Promise<void> | undefined
  #isClosed = false

  /** `mostBytes` bounds the memory: a file is compressed whole. */
  constructor(parts: { store: BlobStore; log: Logger; mostBytes?: number }) {
    this.#store = parts.store
    this.#log = parts.log
    this.#mostBytes = parts.mostBytes ?? 16 * 1024 * 1024
  }

  /** Puts a file in the queue, once; a file that is not to be compressed is left alone. Never throws, never waits. */
  enqueue(file: Compressible) {
    const isFit = file.size >= minBytes && file.size <= this.#mostBytes
    if (this.#isClosed || !isFit || !isCompressible(file.contentType)) return
    if (this.#waiting.size >= longestQueue) return
    this.#waiting.set(file.digest, file)
    this.#running ??= this.#work()
  }

  /** Removes a form that does not unfold to its file; a new one is made when it is next asked for. Never throws. */
  async discard(digest: string, form: (typeof encodedForms)[number]) {
    this.#log.error({ digest, form }, 'compressed form damaged')
    try {
      await this.#store.dropForm(digest, form)
    } catch (error) {
      this.#log.error({ err: error, digest, form }, 'compressed form not removed')
    }
  }

  /** How many files wait to be compressed. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** `listener` is told the digest of each file that has got a new form. */
  onForm(listener: (digest: string) => void) {
    this.#listener = listener
  }

  /** Resolves when the queue is empty and nothing is being made. */
  async idle() {
    while (this.#running) await this.#running
  }

  /** Takes no more, drops what waits, and resolves when what is being made is finished. */
  async close() {
    this.#isClosed = true
    this.#waiting.clear()
    await this.#running
  }

  async #work() {
    for (const [digest, file] of this.#waiting) {
      this.#waiting.delete(digest)
      try {
        await this.#compress(file)
      } catch (error) {
        this.#log.warn({ err: error, digest }, 'file not compressed')
      }
    }
    this.#running = undefined
  }

  // The file stays open, and so is not collected, until its forms are there.
  async #compress({ digest }: Compressible) {
    await using blob = await this.#store.open(digest)
    if (!blob) return // Deleted meanwhile.
    let bytes: Buffer | undefined
    for (const form of encodedForms) {
      if (this.#isClosed) return
      const key = `${digest}.${form}`
      if (this.#vain.has(key) || (await this.#store.formSize(digest, form)) !== undefined) continue
      bytes ??= await readRight(blob, digest)
      const made = await makers[form](bytes)
      if (made.length < bytes.length) {
        await this.#store.putForm(digest, form, made)
        this.#listener(digest)
      } else {
        this.#vain.set(key, true)
      }
    }
  }
}

async function readRight(blob: OpenBlob, digest: string): Promise<Buffer> {
  const bytes = await blob.read(0, blob.size)
  if (hash('sha256', bytes) === digest) return bytes
  throw new Error('the stored content is not what was stored')
}

const longestQueue = 10_000

// Up to here the strongest setting takes at most a second or two; it is paid once, and saves at each download.
const smallBytes = 1024 * 1024
const compressBrotli = promisify(brotliCompress)
const compressZstd = promisify(zstdCompress)
const compressGzip = promisify(gzip)
const chunkSize = 64 * 1024

const makers: Record<(typeof encodedForms)[number], (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) =>
    compressBrotli(bytes, {
      chunkSize,
      params: {
        [constants.BROTLI_PARAM_QUALITY]: bytes.length <= smallBytes ? 11 : 9,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  // Level 19 has a window of at most 8 MiB, which is all that a browser must take (RFC 9659); it is as small as the
  // file only when the size is told.
  zstd: (bytes) =>
    compressZstd(bytes, {
      chunkSize,
      pledgedSrcSize: bytes.length,
      params: { [constants.ZSTD_c_compressionLevel]: bytes.length <= smallBytes ? 19 : 9 },
    }),
  gzip: (bytes) => compressGzip(bytes, { chunkSize, level: 9 }),
}
