import { createHash, hash as hashOnce } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import type { ContentCoding } from './blob-path.ts'

/** SHA-256 digest and size of a file; undefined if it does not exist. */
export async function hashFile(
  file: string,
): Promise<{ digest: string; size: number } | undefined> {
  const hash = createHash('sha256')
  let size = 0
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: chunkLength })) {
      hash.update(chunk)
      size += chunk.length
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  return { digest: hash.digest('hex'), size }
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

const chunkLength = 1_048_576

const decode = {
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
  gzip: promisify(gunzip),
}
