import { createHash } from 'node:crypto'
import type { FileRow } from '../files/file-record.ts'
import { LruLoader } from '../serving/lru-loader.ts'
import type { ContentCoding } from './blob-path.ts'
import type { OpenBlob } from './blob-store.ts'
import { hashBytes } from './hashing.ts'

/**
 * Whether what lies on the disk is what was stored. Bytes that are read whole are compared with their digest. A content
 * that is too large to be read for that at each request is believed as long as nobody has touched its file since it was
 * stored; a compressed form never is. What is not believed is read once, and again when it is touched again. A disk
 * that changes bytes of a large content by itself is not noticed here, but by `files check`.
 */
export class IntegrityProofs {
  readonly #known = new LruLoader<{ isRight: boolean }>(1_048_576, () => 16)

  areRight(bytes: Buffer, row: FileRow, form: ContentCoding): Promise<boolean> {
    return hashBytes(bytes, form, row.size).then((digest) => digest === row.digest)
  }

  async isRight(blob: OpenBlob, row: FileRow, form: ContentCoding): Promise<boolean> {
    if (form === 'identity' && blob.changed <= Date.parse(row.updatedAt)) return true
    const proof = await this.#known.get(`${row.digest}.${form}.${blob.stamp}`, async () => {
      const digest = form === 'identity' ? await hashBlob(blob) : undefined
      if (digest !== undefined) return { isRight: digest === row.digest }
      return { isRight: await this.areRight(await blob.read(0, blob.size), row, form) }
    })
    return proof?.isRight === true
  }
}

async function hashBlob(blob: OpenBlob): Promise<string> {
  const hash = createHash('sha256')
  for (let at = 0; at < blob.size; at += chunkLength) {
    hash.update(await blob.read(at, Math.min(chunkLength, blob.size - at)))
  }
  return hash.digest('hex')
}

const chunkLength = 1_048_576
