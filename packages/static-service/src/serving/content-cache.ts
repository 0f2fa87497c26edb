import { type ContentCoding, encodedForms } from '../blobs/blob-path.ts'
import type { BlobStore, OpenBlob } from '../blobs/blob-store.ts'
import { type Compressor, minBytes } from '../blobs/compressor.ts'
import { IntegrityProofs } from '../blobs/integrity.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { FileRow } from '../files/file-record.ts'
import { chooseForm } from '../rfc9110/content-negotiation.ts'
import type { Served } from './content-headers.ts'
import type { Content } from './content-stream.ts'
import { LruLoader } from './lru-loader.ts'

interface Parts {
  store: BlobStore
  catalog: Catalog
  compressor: Compressor
  memoryBytes: number
  describe: (row: FileRow) => Served
}

/**
 * What can be served, from memory where it is small and often wanted. Never stale: rows are forgotten when the catalog
 * tells of a change, which is before the change is answered; bytes are kept by digest, once they were found to have it.
 */
export class ContentCache {
  readonly #parts: Parts
  readonly #files: LruLoader<Served>
  readonly #forms: LruLoader<readonly ContentCoding[]>
  readonly #bodies: LruLoader<Buffer>
  readonly #proofs = new IntegrityProofs()

  constructor(parts: Parts) {
    const share = Math.floor(parts.memoryBytes / 8)
    this.#parts = parts
    this.#files = new LruLoader(share, () => 4096)
    this.#forms = new LruLoader(share, () => 64)
    this.#bodies = new LruLoader(parts.memoryBytes - 2 * share, (body) => body.length)
    parts.catalog.onChange((paths) => {
      for (const path of paths) this.#files.forget(path)
    })
    parts.compressor.onForm((digest) => this.#forms.forget(digest))
  }

  /** What it keeps in memory, for who counts: rows, lists of forms, and contents. */
  get memory() {
    return { rows: this.#files, forms: this.#forms, contents: this.#bodies }
  }

  /** The file that is at this path now. */
  find(path: string) {
    return this.#files.get(path, async () => {
      const row = await this.#parts.catalog.find(path)
      return row && this.#parts.describe(row)
    })
  }

  /** What memory alone knows of a path, in the best form of those that a client prefers. */
  recall(
    path: string,
    preferred: readonly ContentCoding[],
  ): { served: Served; form: ContentCoding; bytes: Buffer } | undefined {
    const served = this.#files.peek(path)
    if (!served) return undefined
    const isCoded = preferred[0] !== 'identity' && this.#hasForms(served)
    const kept = isCoded ? this.#forms.peek(served.row.digest) : identityOnly
    if (!kept) return undefined
    const form = chooseForm(preferred, kept)
    const bytes = this.#bodies.peek(keyOf(served.row, form))
    return bytes && { served, form, bytes }
  }

  /** The forms that a file is kept in, identity always; those that it could have are asked for. */
  forms(served: Served) {
    const { row } = served
    if (!this.#hasForms(served)) return identityOnly
    return this.#forms.get(row.digest, async () => {
      const found: ContentCoding[] = ['identity']
      for (const form of encodedForms) {
        if (await this.#parts.store.hasForm(row.digest, form)) found.push(form)
      }
      if (found.length <= encodedForms.length) this.#parts.compressor.enqueue(row)
      return found
    })
  }

  /**
   * The bytes of a form, or undefined when they are not there, which is also what becomes of a form that is damaged.
   * @throws when the content itself is not what was stored, as far as `Proofs` can tell.
   */
  content(
    { row }: Served,
    form: ContentCoding,
  ): Content | undefined | Promise<Content | undefined> {
    const small = form === 'identity' ? smallFile : smallSource
    if (row.size > small) return this.#openProven(row, form)
    return this.#bodies.get(keyOf(row, form), async () => {
      await using blob = await this.#open(row, form)
      if (!blob) return undefined
      // A copy: a small buffer is a piece of a larger one, which would stay with it.
      const bytes = copyOf(await blob.read(0, blob.size))
      if (await this.#proofs.areRight(bytes, row, form)) return bytes
      return await this.#reject(row, form)
    })
  }

  /**
   * Whether the bytes of a form are there; they are not read.
   * @throws when there are not as many as the row says.
   */
  async has({ row }: Served, form: ContentCoding): Promise<boolean> {
    const size = await this.#parts.store.formSize(row.digest, form)
    if (form === 'identity' && size !== undefined && size !== row.size)
      throw lengthDiffers(row, size)
    return size !== undefined
  }

  /** Looks again at the catalog and the disk for a file whose bytes were not where they should be. */
  forget({ row }: Served) {
    this.#files.forget(row.path)
    this.#forms.forget(row.digest)
  }

  #hasForms({ row, isCompressible }: Served): boolean {
    return isCompressible && row.size >= minBytes
  }

  async #openProven(row: FileRow, form: ContentCoding): Promise<OpenBlob | undefined> {
    const blob = await this.#open(row, form)
    if (!blob) return undefined
    try {
      if (await this.#proofs.isRight(blob, row, form)) return blob
    } catch (error) {
      await blob[Symbol.asyncDispose]()
      throw error
    }
    await blob[Symbol.asyncDispose]()
    return this.#reject(row, form)
  }

  async #reject(row: FileRow, form: ContentCoding): Promise<undefined> {
    if (form === 'identity') throw isAltered(row)
    await this.#parts.compressor.discard(row.digest, form)
  }

  async #open(row: FileRow, form: ContentCoding): Promise<OpenBlob | undefined> {
    const blob = await this.#parts.store.open(row.digest, form)
    if (!blob || form !== 'identity' || blob.size === row.size) return blob
    await blob[Symbol.asyncDispose]()
    throw lengthDiffers(row, blob.size)
  }
}

const keyOf = ({ digest }: FileRow, form: ContentCoding) =>
  form === 'identity' ? digest : `${digest}.${form}`

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

const identityOnly: readonly ContentCoding[] = ['identity']

// Larger files are read from the disk each time: there a copy costs more than the system calls that it saves.
const smallFile = 256 * 1024
// Of a compressed form only the size of its source is known before it is opened; it is a fraction of that.
const smallSource = 1024 * 1024

const lengthDiffers = (row: FileRow, found: number) =>
  new Error(`the blob ${row.digest} of ${row.path} has ${found} bytes instead of ${row.size}`)

const isAltered = (row: FileRow) =>
  new Error(`the blob ${row.digest} of ${row.path} is not what was stored`)
