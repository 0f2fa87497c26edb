import { createHash, hash as hashOnce } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createZstdDecompress,
  gunzip,
  zstdDecompress,
} from 'node:zlib'
import type { ContentCoding, encodedForms } from './blob-path.ts'

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

/** SHA-256 digest of a compressed file's decoded bytes; undefined if it cannot be decoded. */
export async function hashForm(
  file: string,
  coding: (typeof encodedForms)[number],
): Promise<string | undefined> {
  const hash = createHash('sha256')
  const sink = new Writable({
    write(chunk, _encoding, done) {
      hash.update(chunk)
      done()
    },
  })
  try {
    await pipeline(createReadStream(file), createDecoder[coding](), sink)
  } catch {
    return undefined
  }
  return hash.digest('hex')
}

/** As `hashForm`, of bytes in memory. Decodes in the thread pool, to at most `size` bytes; hashes on this thread. */
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

const createDecoder = { br: createBrotliDecompress, zstd: createZstdDecompress, gzip: createGunzip }

const decode = {
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
  gzip: promisify(gunzip),
}
