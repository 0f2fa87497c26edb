import { hash } from 'node:crypto'
import { type ContentCoding, encodedForms, maxSmallBytes } from '../blobs/blob-path.ts'
import type { OpenBlob } from '../blobs/blob-reader.ts'
import type { BlobStore } from '../blobs/blob-store.ts'
import { type Compressor, minBytes } from '../blobs/compressor.ts'
import { IntegrityProofs } from '../blobs/integrity.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { FileRow } from '../files/file-record.ts'
import { chooseCoding } from '../rfc9110/content-negotiation.ts'
import { ChunkCache } from './chunk-cache.ts'
import type { Content } from './content-stream.ts'
import { LruLoader } from './lru-loader.ts'
import type { ServedFile } from './served-file.ts'
import { createServedFiles, type ServedFiles } from './served-files.ts'

interface Dependencies {
  store: BlobStore
  catalog: Catalog
  compressor: Compressor
  memoryBytes: number
  describe: (row: FileRow) => ServedFile
}

/** A representation of a file whose bytes are in memory, and what of it was there already. */
export interface CachedContent {
  file: ServedFile
  coding: ContentCoding
  bytes: Buffer
  isHit: { file: boolean; bytes: boolean }
}

/**
 * Files and their contents for serving; small contents stay in memory. Never stale: `ServedFiles` has the files as they
 * are now; bytes are cached by digest, after they were found to match it.
 */
export class ContentCache {
  readonly #store: BlobStore
  readonly #compressor: Compressor
  readonly #files: ServedFiles
  readonly #codings: LruLoader<readonly ContentCoding[]>
  readonly #contents: LruLoader<Buffer>
  readonly #chunks: ChunkCache
  readonly #proofs: IntegrityProofs

  constructor({ store, catalog, compressor, memoryBytes, describe }: Dependencies) {
    const share = Math.floor(memoryBytes / 8)
    this.#store = store
    this.#compressor = compressor
    this.#proofs = new IntegrityProofs(store.verified)
    this.#files = createServedFiles({ catalog, memoryBytes: share, describe })
    this.#codings = new LruLoader(share, () => 64)
    this.#chunks = new ChunkCache(2 * share)
    this.#contents = new LruLoader(memoryBytes - 4 * share, (content) => content.length)
    compressor.onForm((digest) => this.#codings.invalidate([digest]))
  }

  /** Its caches by the label of their metrics. */
  get memory() {
    const chunks = this.#chunks.memory
    return { rows: this.#files.memory, forms: this.#codings, contents: this.#contents, chunks }
  }

  /** The file that is at this path now, as this request finds it. */
  find(path: string, request?: object) {
    return this.#files.find(path, request)
  }

  /**
   * The preferred representation of a path, if memory has all that is needed or can load it without waiting. `confirm` it
   * before it is used, and call `countHits` then.
   */
  peek(path: string, preferred: readonly ContentCoding[], now: number): CachedContent | undefined {
    const known = this.#files.peek(path)
    const file = known ?? this.#files.findNow(path, now)
    if (!file) return undefined
    const isNegotiated = preferred[0] !== 'identity' && canBeCompressed(file)
    const stored = isNegotiated ? this.#codings.inspect(file.row.digest) : identityOnly
    if (!stored) return undefined
    const coding = chooseCoding(preferred, stored)
    const cached = this.#contents.inspect(contentKey(file.row, coding))
    const bytes = cached ?? this.#readNow(file.row, coding)
    const isHit = { file: known !== undefined, bytes: cached !== undefined }
    return bytes && { file, coding, bytes, isHit }
  }

  /** Whether the file is still at its path. If not, `find` for the same request uses this look-up. */
  confirm(file: ServedFile, request: object): true | Promise<boolean> {
    return this.#files.confirm(file, request)
  }

  /** Counts what `find` and `content` would have counted. */
  countHits({ isHit }: CachedContent) {
    if (isHit.file) this.#files.memory.counts.hit += 1
    if (isHit.bytes) this.#contents.counts.hit += 1
  }

  /** The codings that a file is stored in, identity among them. Requests the compressed forms that it could have. */
  codings(file: ServedFile) {
    const { row } = file
    if (!canBeCompressed(file)) return identityOnly
    return this.#codings.get(row.digest, async () => {
      const stored: ContentCoding[] = ['identity', ...(await this.#store.forms(row.digest))]
      if (stored.length <= encodedForms.length) this.#compressor.enqueue(row)
      return stored
    })
  }

  /**
   * The bytes of a representation; undefined when they are missing, or are a damaged compressed form, which is discarded.
   * @throws when the content is not what was stored.
   */
  content(
    { row }: ServedFile,
    coding: ContentCoding,
  ): Content | undefined | Promise<Content | undefined> {
    const maxCached = coding === 'identity' ? maxCachedBytes : maxCompressedSource
    if (row.size > maxCached) return this.#openProven(row, coding)
    return this.#contents.get(contentKey(row, coding), async () => {
      await using blob = await this.#open(row, coding)
      if (!blob) return undefined
      // Copy: a pooled slice would keep its whole buffer alive.
      const bytes = copyOf(await blob.read(0, blob.size))
      if (await this.#proofs.areRight(bytes, row, coding)) return bytes
      return await this.#discard(row, coding)
    })
  }

  /**
   * The size of a representation, without reading it; undefined when it is missing.
   * @throws when a content has another size than its row says.
   */
  async sizeOf({ row }: ServedFile, coding: ContentCoding): Promise<number | undefined> {
    const cached = this.#contents.inspect(contentKey(row, coding))
    const size = cached?.length ?? (await this.#store.formSize(row.digest, coding))
    if (coding === 'identity' && size !== undefined && size !== row.size)
      throw lengthDiffers(row, size)
    return size
  }

  /** Drops what is cached about a file whose bytes are missing. */
  invalidate(file: ServedFile) {
    this.#files.invalidate(file)
    this.#codings.invalidate([file.row.digest])
  }

  // Damaged bytes are left to `content`, which reports them.
  #readNow(row: FileRow, coding: ContentCoding): Buffer | undefined {
    if (coding !== 'identity' || row.size > maxSmallBytes) return undefined
    const bytes = this.#store.readNow?.(row.digest)
    if (bytes?.length !== row.size || hash('sha256', bytes) !== row.digest) return undefined
    this.#contents.counts.miss += 1
    this.#contents.set(row.digest, bytes)
    return bytes
  }

  async #openProven(row: FileRow, coding: ContentCoding): Promise<OpenBlob | undefined> {
    const blob = await this.#open(row, coding)
    if (!blob) return undefined
    try {
      if (await this.#proofs.isRight(blob, row, coding))
        return this.#chunks.through(blob, contentKey(row, coding))
    } catch (error) {
      await blob[Symbol.asyncDispose]()
      throw error
    }
    await blob[Symbol.asyncDispose]()
    return this.#discard(row, coding)
  }

  async #discard(row: FileRow, coding: ContentCoding): Promise<undefined> {
    if (coding === 'identity') throw isDamaged(row)
    await this.#compressor.discard(row.digest, coding)
  }

  async #open(row: FileRow, coding: ContentCoding): Promise<OpenBlob | undefined> {
    const blob = await this.#store.open(row.digest, coding)
    if (!blob || coding !== 'identity' || blob.size === row.size) return blob
    await blob[Symbol.asyncDispose]()
    throw lengthDiffers(row, blob.size)
  }
}

const canBeCompressed = ({ row, isCompressible }: ServedFile) =>
  isCompressible && row.size >= minBytes

const contentKey = ({ digest }: FileRow, coding: ContentCoding) =>
  coding === 'identity' ? digest : `${digest}.${coding}`

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

const identityOnly: readonly ContentCoding[] = ['identity']

// Larger contents are sent in chunks.
const maxCachedBytes = 256 * 1024
// The size of a compressed form is unknown before it is opened; it is a fraction of its source.
const maxCompressedSource = 1024 * 1024

const lengthDiffers = (row: FileRow, found: number) =>
  new Error(`the blob ${row.digest} of ${row.path} has ${found} bytes instead of ${row.size}`)

const isDamaged = (row: FileRow) =>
  new Error(`the blob ${row.digest} of ${row.path} is not what was stored`)
