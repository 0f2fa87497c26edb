import { describeIssue, toFaults, validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import type { ArchiveEntry } from '../../archives/read-archive.ts'
import { maxSmallBytes } from '../../blobs/blob-path.ts'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { StagedBlob, StoredBlob } from '../../blobs/staged-blob.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { ContentReader } from '../../catalog/reads.ts'
import { contentsMissing, invalidArchive, treeTooLarge } from '../../errors.ts'
import { findPathFault, join, nameOf, parentOf } from '../../files/file-path.ts'
import type { NewFile } from '../../files/file-record.ts'
import { categoryOf, contentTypeOf, headLength, typeByName } from '../../files/media-type.ts'
import type { UploadLimits } from '../files/store-files.ts'

export interface TreeLimits {
  /** Of one file. */
  uploads: UploadLimits
  maxFiles: number
  /** Of all files. */
  maxBytes: number
}

export type ArrivedFile = Omit<NewFile, 'uploadedBy'>

/** The paths that the entries of a tree get: each once, none both a file and a directory, at most `maxFiles`. */
export class TreePaths {
  readonly #directory: string
  readonly #maxFiles: number
  readonly #files = new Set<string>()
  readonly #directories = new Set<string>()

  constructor(directory: string, { maxFiles }: Pick<TreeLimits, 'maxFiles'>) {
    this.#directory = directory
    this.#maxFiles = maxFiles
  }

  /**
   * The stored path of an entry; undefined: it is skipped.
   * @throws {HttpError} `invalid_archive` or `tree_too_large`.
   */
  add(name: string, kind: ArchiveEntry['kind'] = 'file'): string | undefined {
    const relative = name.replace(/^\.\//, '')
    if (relative.startsWith('/')) throw invalidArchive('its name is absolute', name)
    if (relative.split('/').includes('..')) throw invalidArchive('its name contains ..', name)
    if (kind === 'directory' || isSkipped(relative)) return undefined
    if (kind === 'other') throw invalidArchive('it is a link, a device or a sparse file', name)
    const path = join(this.#directory, relative).normalize('NFC')
    const fault = findPathFault(path)
    if (fault?.code === 'invalid_path') throw invalidArchive(fault.reason, name)
    if (fault) throw invalidArchive(`a path cannot begin with ${fault.segment}`, name)
    this.#enter(path, name)
    return path
  }

  #enter(path: string, name: string) {
    if (this.#files.has(path)) throw invalidArchive('the name is there twice', name)
    if (this.#directories.has(path)) throw invalidArchive('it is also a directory', name)
    for (let at = parentOf(path); at !== '' && !this.#directories.has(at); at = parentOf(at)) {
      if (this.#files.has(at)) throw invalidArchive('a directory of its name is a file', name)
      this.#directories.add(at)
    }
    if (this.#files.size === this.#maxFiles) throw treeTooLarge(`${this.#maxFiles} files`)
    this.#files.add(path)
  }
}

// What macOS adds.
const isSkipped = (name: string) =>
  nameOf(name).startsWith('._') || nameOf(name) === '.DS_Store' || name.startsWith('__MACOSX/')

interface Dependencies {
  catalog: Pick<Catalog, 'writes'>
  store: BlobStore
  limits: TreeLimits
  callerId: string
}

/**
 * The files of an archive while they arrive: their contents are durable once they are received, and leased until this
 * is disposed of.
 */
export class TreeArrivals implements AsyncDisposable {
  readonly #dependencies: Dependencies
  readonly #drafts = new Set<StagedBlob>()
  readonly #keeping = new Set<Promise<void>>()
  #keptBytes = 0
  /** Blobs that the store holds in memory. */
  #held: { draft: StagedBlob; content: StoredBlob }[] = []
  #failure: unknown

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** @throws {HttpError} `invalid_archive`, `tree_too_large`, `file_too_large` or `insufficient_storage`. */
  async receive(entries: AsyncIterable<ArchiveEntry>, paths: TreePaths): Promise<ArrivedFile[]> {
    const { maxBytes, uploads } = this.#dependencies.limits
    const files: ArrivedFile[] = []
    let total = 0
    const count = (bytes: number) => {
      if (total + bytes > maxBytes) throw treeTooLarge(`${maxBytes} bytes`)
    }
    for await (const { name, kind, size, content } of entries) {
      const path = paths.add(name, kind)
      if (path === undefined) continue
      uploads.checkSize(size)
      count(size)
      const draft = this.#dependencies.store.draft()
      this.#drafts.add(draft)
      for await (const chunk of content) {
        await draft.write(chunk)
        uploads.checkSize(draft.size)
        count(draft.size)
      }
      total += draft.size
      await this.#keep(draft, path, files)
      await this.#releaseHeld()
    }
    await Promise.all(this.#keeping)
    if (this.#failure) throw this.#failure
    return files
  }

  /** Stores bytes in a temporary file, and returns its path. */
  async spool(chunks: AsyncIterable<Buffer>): Promise<string> {
    const draft = this.#dependencies.store.draft()
    this.#drafts.add(draft)
    for await (const chunk of chunks) await draft.write(chunk)
    return draft.spool()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#keeping)
    for (const draft of this.#drafts) await draft[Symbol.asyncDispose]()
  }

  // Blobs become durable while the next ones arrive: the store commits small ones in groups.
  async #keep(draft: StagedBlob, path: string, files: ArrivedFile[]) {
    const keeping = this.#makeDurable(draft, path)
      .then((file) => void files.push(file))
      .catch((error) => {
        this.#failure ??= error
      })
      .finally(() => {
        this.#keeping.delete(keeping)
        this.#keptBytes -= draft.size
      })
    this.#keeping.add(keeping)
    this.#keptBytes += draft.size
    const isBusy = () => this.#keeping.size >= maxKeeping || this.#keptBytes > maxKeepingBytes
    while (this.#keeping.size > 0 && isBusy()) await Promise.race(this.#keeping)
    if (this.#failure) throw this.#failure
  }

  async #makeDurable(draft: StagedBlob, path: string): Promise<ArrivedFile> {
    await draft.seal()
    const contentType = await contentTypeOf(nameOf(path), draft.head)
    const content = await draft.keep()
    if (this.#dependencies.store.holdsSmall && content.size <= maxSmallBytes)
      this.#held.push({ draft, content })
    return { path, ...content, contentType, category: categoryOf(contentType) }
  }

  // Keeps blobs without a file, to free their memory. Those of a rejected archive stay for a day.
  async #releaseHeld() {
    if (this.#held.reduce((sum, { content }) => sum + content.size, 0) < maxHeldBytes) return
    const held = this.#held.splice(0)
    const { catalog, callerId } = this.#dependencies
    const contents = held.map(({ content }) => content)
    // The quota is checked for the files, once all have arrived.
    await catalog.writes.keepContents({ contents, callerId, isLimited: false })
    for (const { draft } of held) {
      this.#drafts.delete(draft)
      await draft[Symbol.asyncDispose]()
    }
  }
}

// The size of a group commit.
const maxKeeping = 64
const maxKeepingBytes = 8_388_608
const maxHeldBytes = 8_388_608

/**
 * The files of `{ "files": { "path": { "sha256" } } }`, whose contents must be stored, and known to the reader.
 * @throws {HttpError} `validation_failed`, `invalid_archive`, `tree_too_large` or `contents_missing`.
 */
export async function readManifest(
  body: object,
  paths: TreePaths,
  { catalog, store, reader }: { catalog: Catalog; store: BlobStore; reader: ContentReader },
): Promise<ArrivedFile[]> {
  const named = digestsOf(body).flatMap(({ name, digest }) => {
    const path = paths.add(name)
    return path === undefined ? [] : [{ path, digest }]
  })
  const digests = new Set(named.map(({ digest }) => digest))
  const sizes = await catalog.reads.contentSizes({ ...reader, digests: [...digests] })
  const missing = [...digests].filter((digest) => !sizes.has(digest))
  if (missing.length > 0) throw contentsMissing(missing.slice(0, maxMissing))
  const files: ArrivedFile[] = []
  for (const { path, digest } of named) {
    const contentType = typeByName(nameOf(path)) ?? (await detectType(store, nameOf(path), digest))
    const size = sizes.get(digest) ?? 0
    files.push({ path, digest, size, contentType, category: categoryOf(contentType) })
  }
  return files
}

const maxMissing = 1000

/** The media type of a stored content under a name. */
export async function detectType(store: BlobStore, name: string, digest: string): Promise<string> {
  await using blob = await store.open(digest)
  const head = await blob?.read(0, Math.min(headLength, blob.size))
  return contentTypeOf(name, head ?? Buffer.alloc(0))
}

const Manifest = z.strictObject({ files: z.custom<object>(isObject, 'must be an object') })

// GET of a tree names the sizes, too.
const ManifestFile = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits in lower case'),
  size: z.unknown().optional(),
})

// Not as a record, of which zod drops the key `__proto__`.
function digestsOf(body: object): { name: string; digest: string }[] {
  const { files } = parse(Manifest, body, '')
  return Object.entries(files).map(([name, file]) => {
    const pointer = `/files/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return { name, digest: parse(ManifestFile, file, pointer).sha256 }
  })
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string) {
  const { data, error } = schema.safeParse(value, { error: describeIssue, reportInput: true })
  if (error) throw validationFailed(toFaults(error, place))
  return data
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
