import { createHash, hash as hashOnce } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import { headLength } from '../files/media-type.ts'
import type { ContentCoding } from './blob-path.ts'

/** SHA-256 of a content as it arrives, and its first bytes, from which a media type can be detected. */
export class ContentHash {
  readonly #hash = createHash('sha256')
  #head = Buffer.alloc(0)
  #size = 0

  get size(): number {
    return this.#size
  }

  get head(): Buffer {
    return this.#head
  }

  /** In hex, of the bytes so far. */
  get digest(): string {
    return this.#hash.copy().digest('hex')
  }

  update(chunk: Buffer): void {
    this.#hash.update(chunk)
    this.#size += chunk.length
    const missing = headLength - this.#head.length
    if (missing > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, missing)])
  }
}

/**
 * SHA-256 digest of decoded bytes; undefined if they cannot be decoded. Decodes in the thread pool, to at most `size` bytes;
 * hashes on this thread.
 */
export async function hashBytes(
  bytes: Buffer,
  coding: ContentCoding,
  size: number,
): Promise<string | undefined> {
  if (coding === 'identity') return hashOnce('sha256', bytes)
  try {
    // Bounded: damaged bytes could decode to any size.
    return hashOnce('sha256', await decode[coding](bytes, { maxOutputLength: Math.max(size, 1) }))
  } catch {
    return undefined
  }
}

const decode = {
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
  gzip: promisify(gunzip),
}
