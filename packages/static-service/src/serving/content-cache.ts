import { hash } from 'node:crypto'
import type { OpenBlob } from '@domains-and-files/persistence'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { Compressor } from '../blobs/compressor.ts'
import { hashBytes, maxSmallBytes, Verifier } from '../blobs/stored-blob.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { FileRow } from '../catalog/tables.ts'
import type { Config } from '../config.ts'
import { type ContentCoding, compressedCodings } from '../rfc9110/content-codings.ts'
import { ChunkMemory, type Content, type LargeContent, type Loaded, LruLoader } from './content-stream.ts'
import { describeFile, type ServedFile } from './served-file.ts'

interface Dependencies {
  store: BlobStore
  catalog: Catalog
  compressor: Compressor
  policies: Config['static']
}

/**
 * Cache of files and blobs for serving. Small blobs stay in memory, so most calls return synchronously. Never stale:
 * every `find` after the response to a change sees the change. Bytes are cached by digest, after they were verified
 * against it; callers reach them only through a file.
 */
export class ContentCache {
  readonly #dependencies: Dependencies
  /** By path; look there directly only where this process alone changes the catalog: elsewhere they may be stale. */
  readonly files: LruLoader<ServedFile>
  /** Of bytes; a caller that has kept them counts a hit. */
  readonly counts: LruLoader<Buffer>['counts']
  readonly #codings: LruLoader<readonly ContentCoding[]>
  readonly #contents: LruLoader<Buffer>
  readonly #chunks: ChunkMemory
  readonly #verifier: Verifier

  constructor(dependencies: Dependencies) {
    const { store, catalog, compressor, policies } = dependencies
    const share = Math.floor(policies.memoryCacheBytes / 8)
    this.#dependencies = dependencies
    this.#verifier = new Verifier(store.verified)
    this.files = new LruLoader(share, () => fileBytes)
    this.#codings = new LruLoader(share, () => 64)
    this.#chunks = new ChunkMemory(2 * share)
    this.#contents = new LruLoader(policies.memoryCacheBytes - 4 * share, (content) => content.length)
    this.counts = this.#contents.counts
    // Called before the response to the change.
    catalog.onChange(this.files.invalidate)
    compressor.onForm = (digest) => this.#codings.invalidate([digest])
  }

  /** The caches by their metrics label. */
  get memory() {
    const chunks = this.#chunks.cache
    return { rows: this.files, forms: this.#codings, contents: this.#contents, chunks }
  }

  /** The file that is at this path now. Where other processes change the catalog, each call reads it. */
  find(path: string): Loaded<ServedFile> {
    const { catalog } = this.#dependencies
    if (!catalog.findNow) return catalog.find(path).then((row) => this.#describe(row))
    return this.files.peek(path) ?? this.#describe(catalog.findNow(path))
  }

  /** The file that a deploy, a restore or a revert has removed from this path within the grace; never HTML. */
  async findEnded(path: string): Promise<ServedFile | undefined> {
    const { catalog, policies } = this.#dependencies
    if (policies.graceSeconds === 0) return undefined
    const since = new Date(Date.now() - 1000 * policies.graceSeconds).toISOString()
    const row = await catalog.reads.lastDeployed({ path, since })
    if (!row || row.contentType === 'text/html') return undefined
    const file = describeFile(row, policies)
    return { ...file, headers: { ...file.headers, 'cache-control': 'public, max-age=0, must-revalidate' } }
  }

  /** The codings that a compressible file is stored in, including identity. Queues the compression of missing ones. */
  codings({ row }: ServedFile) {
    const { store, compressor } = this.#dependencies
    return this.#codings.get(row.digest, async () => {
      const stored: ContentCoding[] = ['identity', ...(await store.forms(row.digest))]
      if (stored.length <= compressedCodings.length) compressor.enqueue({ ...row, known: stored })
      return stored
    })
  }

  /**
   * The bytes of a representation. Undefined if they are missing; also for a damaged compressed form, which is discarded.
   * @throws when the blob itself is damaged.
   */
  content({ row }: Pick<ServedFile, 'row'>, coding: ContentCoding): Loaded<Content> {
    const maxCached = coding === 'identity' ? maxCachedBytes : maxCompressedSource
    if (row.size > maxCached) return this.#openVerified(row, coding)
    const readWhole = () => this.#readWhole(row, coding)
    return this.#contents.get(contentKey(row, coding), readWhole, () => this.#readNow(row, coding))
  }

  /**
   * The size of a representation, without reading it; undefined when it is missing.
   * @throws when the size of a blob differs from its row.
   */
  async sizeOf({ row }: ServedFile, coding: ContentCoding): Promise<number | undefined> {
    const cached = this.#contents.peek(contentKey(row, coding))
    const size = cached?.length ?? (await this.#dependencies.store.formSize(row.digest, coding))
    if (coding === 'identity' && size !== undefined && size !== row.size) throw lengthDiffers(row, size)
    return size
  }

  /** Drops what is cached about a file whose bytes are missing. */
  invalidate(file: ServedFile) {
    this.files.invalidate([file.row.path])
    this.#codings.invalidate([file.row.digest])
  }

  // Describes an unchanged file once: the catalog returns the same object for it.
  #describe(row: FileRow | undefined): ServedFile | undefined {
    if (!row) return undefined
    const known = this.files.peek(row.path)
    if (known?.row === row) return known
    this.files.counts.miss += 1
    const file = describeFile(row, this.#dependencies.policies)
    this.files.set(row.path, file)
    return file
  }

  // Synchronous reads only. Skips damaged bytes: `#readWhole` reports them.
  #readNow(row: FileRow, coding: ContentCoding): Buffer | undefined {
    if (coding !== 'identity' || row.size > maxSmallBytes) return undefined
    const bytes = this.#dependencies.store.readNow?.(row.digest)
    const isWhole = bytes?.length === row.size && hash('sha256', bytes) === row.digest
    return isWhole ? bytes : undefined
  }

  async #readWhole(row: FileRow, coding: ContentCoding): Promise<Buffer | undefined> {
    await using blob = await this.#open(row, coding)
    if (!blob) return undefined
    // Into a buffer of its own: a pooled slice would keep its whole buffer alive.
    const bytes = await blob.read(0, blob.size, Buffer.allocUnsafeSlow(blob.size))
    if ((await hashBytes(bytes, coding, row.size)) === row.digest) return bytes
    return await this.#discard(row, coding)
  }

  async #openVerified(row: FileRow, coding: ContentCoding): Promise<LargeContent | undefined> {
    await using opened = new AsyncDisposableStack()
    const blob = opened.use(await this.#open(row, coding))
    if (!blob) return undefined
    if (!(await this.#verifier.verify(blob, row, coding))) return await this.#discard(row, coding)
    opened.move() // The caller closes it.
    return this.#chunks.request(blob, contentKey(row, coding))
  }

  async #discard(row: FileRow, coding: ContentCoding): Promise<undefined> {
    if (coding === 'identity') throw isDamaged(row)
    await this.#dependencies.compressor.discard(row.digest, coding)
  }

  async #open(row: FileRow, coding: ContentCoding): Promise<OpenBlob | undefined> {
    const blob = await this.#dependencies.store.open(row.digest, coding)
    if (!blob || coding !== 'identity' || blob.size === row.size) return blob
    await blob[Symbol.asyncDispose]()
    throw lengthDiffers(row, blob.size)
  }
}

const contentKey = ({ digest }: FileRow, coding: ContentCoding) =>
  coding === 'identity' ? digest : `${digest}.${coding}`

// Estimated memory of a file, its record and its representations.
const fileBytes = 5120
// Larger blobs are sent in chunks.
const maxCachedBytes = 256 * 1024
// The size of a compressed form is unknown before it is opened; it is a fraction of its source.
const maxCompressedSource = 1024 * 1024

const lengthDiffers = (row: FileRow, found: number) =>
  new Error(`the blob ${row.digest} of ${row.path} has ${found} bytes instead of ${row.size}`)

const isDamaged = (row: FileRow) => new Error(`the blob ${row.digest} of ${row.path} is not what was stored`)
