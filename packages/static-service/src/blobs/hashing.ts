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

/** The digest and size of a file as it lies on the disk; nothing when it is not there. */
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

/** The digest of what a compressed form unfolds to; nothing when it does not unfold. */
export async function hashForm(
  file: string,
  form: (typeof encodedForms)[number],
): Promise<string | undefined> {
  const hash = createHash('sha256')
  const sink = new Writable({
    write(chunk, _encoding, done) {
      hash.update(chunk)
      done()
    },
  })
  try {
    await pipeline(createReadStream(file), unfold[form](), sink)
  } catch {
    return undefined
  }
  return hash.digest('hex')
}

/** As `hashForm`, of bytes in memory, off the main thread but for the hash; of identity, the digest of the bytes. */
export async function hashBytes(
  bytes: Buffer,
  form: ContentCoding,
  size: number,
): Promise<string | undefined> {
  if (form === 'identity') return hashOnce('sha256', bytes)
  try {
    // Not more than the content has: what was altered could unfold without end.
    return hashOnce(
      'sha256',
      await unfoldBytes[form](bytes, { maxOutputLength: Math.max(size, 1) }),
    )
  } catch {
    return undefined
  }
}

const chunkLength = 1_048_576

const unfold = { br: createBrotliDecompress, zstd: createZstdDecompress, gzip: createGunzip }

const unfoldBytes = {
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
  gzip: promisify(gunzip),
}
