import { createHash, hash as hashOnce } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import { type BlobRef, findFault, type OpenBlob, piecesOf } from '@domains-and-files/persistence'
import { headLength } from '../files/media-type.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'

/** Blobs and compressed forms up to this size are database rows; larger ones are files or objects. */
export const maxSmallBytes = 32_768

/** The path of a blob, or of its compressed form, below `blobs`. */
export const blobPathOf = (digest: string, form: ContentCoding = 'identity') =>
  [digest.slice(0, 2), digest.slice(2, 4), form === 'identity' ? digest : `${digest}.${form}`] as const

/** Group-readable for a proxy that sends files itself (docs/proxy.md); the mode of the data folder excludes others. */
export const blobMode = 0o640

export const folderMode = 0o750

/** SHA-256 of an arriving blob, and its first bytes, from which a media type can be detected. */
export class ContentHash {
  readonly #hash = createHash('sha256')
  head = Buffer.alloc(0)
  size = 0

  /** `chunks`: bytes that are there already. */
  constructor(chunks: Buffer[] = []) {
    for (const chunk of chunks) this.update(chunk)
  }

  get digest(): string {
    return this.#hash.copy().digest('hex')
  }

  update(chunk: Buffer): void {
    this.#hash.update(chunk)
    this.size += chunk.length
    const missing = headLength - this.head.length
    if (missing > 0) this.head = Buffer.concat([this.head, chunk.subarray(0, missing)])
  }
}

/** The hash of all bytes, read in pieces. */
export async function hashBlob(blob: OpenBlob): Promise<ContentHash> {
  const hash = new ContentHash()
  for await (const piece of piecesOf(blob)) hash.update(piece)
  return hash
}

/**
 * SHA-256 digest of decoded bytes; undefined if they cannot be decoded. Decodes in the thread pool, to at most `size`
 * bytes; hashes on this thread.
 */
export async function hashBytes(bytes: Buffer, coding: ContentCoding, size: number): Promise<string | undefined> {
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

/** A blob that matched its digest, with the stamp of the bytes that were verified. */
export interface VerifiedContent {
  digest: string
  coding: ContentCoding
  stamp: string
}

export interface VerifiedContents {
  isVerified(content: VerifiedContent): boolean
  /** Records it in the background. If that fails, the blob is hashed again when needed. */
  recordVerified(content: VerifiedContent): void
}

/**
 * Verifies stored bytes against their digest. Blobs that are read whole are hashed each time. A file is hashed once;
 * the content database then records its inode, size and modification time, which survive restarts, hard links and mode
 * changes. `files check` finds silent disk corruption.
 */
export class Verifier {
  readonly #known: VerifiedContents
  readonly #running = new Map<string, Promise<boolean>>()

  constructor(known: VerifiedContents) {
    this.#known = known
  }

  /** Whether a blob, or its compressed form, matches the digest and size of the blob. */
  async verify(blob: OpenBlob, expected: BlobRef, coding: ContentCoding): Promise<boolean> {
    const { digest } = expected
    const { stamp } = blob
    if (stamp === undefined) return matches(blob, expected, coding)
    if (this.#known.isVerified({ digest, coding, stamp })) return true
    const key = `${digest}.${coding}.${stamp}`
    const verify = () => matches(blob, expected, coding).finally(() => this.#running.delete(key))
    const isRight = await this.#running.getOrInsertComputed(key, verify)
    if (isRight) this.#known.recordVerified({ digest, coding, stamp })
    return isRight
  }
}

async function matches(blob: OpenBlob, ref: BlobRef, coding: ContentCoding) {
  if (coding === 'identity') return (await findFault(blob, ref)) === undefined
  return (await hashBytes(await blob.read(0, blob.size), coding, ref.size)) === ref.digest
}
