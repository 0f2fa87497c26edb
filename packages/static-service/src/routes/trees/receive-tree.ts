import type { Caller } from '@domains-and-files/auth'
import { describeIssue, type Fault, parseInput, pointerTo, toFaults, validationFailed } from '@domains-and-files/http'
import { allEnded } from '@domains-and-files/persistence'
import { z } from 'zod'
import { type ArchiveEntry, type Body, readArchive } from '../../archives/read-archive.ts'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { StagedBlob } from '../../blobs/staging-file.ts'
import { maxSmallBytes } from '../../blobs/stored-blob.ts'
import type { NewFile } from '../../catalog/tables.ts'
import { contentsMissing, invalidArchive, treeTooLarge } from '../../errors.ts'
import { findPathFault, join, nameOf } from '../../files/file-path.ts'
import { categoryOf, contentTypeOf, headLength, typeByName } from '../../files/media-type.ts'
import { type FileDependencies, keepFile } from '../files/store-files.ts'

/** The stored path of an entry of an archive; undefined: it is skipped. @throws {HttpError} `invalid_archive`. */
function pathOf(directory: string, name: string, kind: ArchiveEntry['kind']): string | undefined {
  const relative = name.replace(/^\.\//, '')
  if (relative.startsWith('/')) throw invalidArchive('its name is absolute', name)
  if (relative.split('/').includes('..')) throw invalidArchive('its name contains ..', name)
  if (kind === 'directory' || isSkipped(relative)) return undefined
  if (kind === 'other') throw invalidArchive('it is a link, a device or a sparse file', name)
  const path = join(directory, relative).normalize('NFC')
  const fault = findPathFault(path)
  if (fault) throw invalidArchive(fault.reason ?? 'its path begins with a reserved name', name)
  return path
}

// What macOS adds.
const isSkipped = (name: string) =>
  nameOf(name).startsWith('._') || nameOf(name) === '.DS_Store' || `/${name}`.includes('/__MACOSX/')

interface TreeArrival {
  path: string
  draft: StagedBlob
}

interface Dependencies extends FileDependencies {
  caller: Caller
  /** The root is empty. */
  directory: string
}

/** The files of an arriving body. Their contents are durable once received, and leased until this is disposed of. */
export class TreeArrivals implements AsyncDisposable {
  readonly #dependencies: Dependencies
  readonly #paths = new Set<string>()
  readonly #drafts = new Set<StagedBlob>()
  /** Of one batch; settles once each of its blobs is durable, or has failed. */
  #keeping = Promise.resolve()
  /** Blobs that the store holds in memory. */
  #held: { draft: StagedBlob; size: number; digest: string }[] = []
  readonly #files: NewFile[] = []

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /**
   * The files of an archive.
   * @throws {HttpError} `invalid_archive`, `tree_too_large`, `file_too_large` or `insufficient_storage`.
   */
  async receive(body: Body): Promise<NewFile[]> {
    const { limits, trees } = this.#dependencies
    const { maxBytes, maxFiles } = trees
    const entries = readArchive(body, { maxBytes, maxFiles, spool: this.#spool })
    const batch: TreeArrival[] = []
    let [total, kept] = [0, 0]
    const check = (bytes: number) => {
      limits.checkSize(bytes)
      if (total + bytes > maxBytes) throw treeTooLarge(`${maxBytes} bytes`)
    }
    for await (const { name, kind, size, content } of entries) {
      const path = this.#enter(name, kind)
      if (path === undefined) continue
      check(size)
      const draft = this.#draft()
      for await (const chunk of content) {
        await draft.write(chunk)
        check(draft.size)
      }
      total += draft.size
      batch.push({ path, draft })
      if (batch.length < maxBatch && total - kept < maxBatchBytes) continue
      kept = total
      await this.#keep(batch.splice(0))
    }
    await this.#keep(batch)
    await this.#keeping
    return this.#files
  }

  /**
   * The files of `{ "files": { "path": { "sha256" } } }`, whose contents must be stored, and known to the caller.
   * @throws {HttpError} `validation_failed`, `invalid_archive`, `tree_too_large` or `contents_missing`.
   */
  async readManifest(body: unknown): Promise<NewFile[]> {
    const { catalog, store, caller } = this.#dependencies
    const named: Pick<NewFile, 'path' | 'digest'>[] = []
    for (const { name, digest } of digestsOf(body)) {
      const path = this.#enter(name)
      if (path !== undefined) named.push({ path, digest })
    }
    const digests = new Set(named.map(({ digest }) => digest))
    const { username: uploadedBy } = caller
    const sizes = await catalog.reads.contentSizes({ ...caller, digests: [...digests] })
    const missing = [...digests].filter((digest) => !sizes.has(digest))
    if (missing.length > 0) throw contentsMissing(missing.slice(0, maxNamed))
    for (const { path, digest } of named) {
      const type = await detectType(store, nameOf(path), digest)
      this.#files.push({ path, digest, size: sizes.get(digest) ?? 0, ...type, uploadedBy })
    }
    return this.#files
  }

  /** The stored path of an entry; undefined: it is skipped. @throws {HttpError} `invalid_archive` or `tree_too_large`. */
  #enter(name: string, kind: ArchiveEntry['kind'] = 'file'): string | undefined {
    const { directory, trees } = this.#dependencies
    const path = pathOf(directory, name, kind)
    if (path === undefined) return undefined
    if (this.#paths.has(path)) throw invalidArchive('the name is there twice', name)
    if (this.#paths.size === trees.maxFiles) throw treeTooLarge(`${trees.maxFiles} files`)
    this.#paths.add(path)
    return path
  }

  #draft() {
    const draft = this.#dependencies.store.draft()
    this.#drafts.add(draft)
    return draft
  }

  readonly #spool = async (chunks: AsyncIterable<Buffer>): Promise<string> => {
    const draft = this.#draft()
    for await (const chunk of chunks) await draft.write(chunk)
    await draft.settle()
    await draft.close()
    return draft.file
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keeping.catch(() => undefined)
    for (const draft of this.#drafts) await draft[Symbol.asyncDispose]()
  }

  // A batch becomes durable while the next one arrives: the store commits small blobs in groups.
  async #keep(batch: TreeArrival[]) {
    await this.#keeping
    this.#keeping = this.#makeDurable(batch)
    this.#keeping.catch(() => undefined) // Thrown when the next batch has arrived.
  }

  async #makeDurable(batch: TreeArrival[]) {
    const { store, caller } = this.#dependencies
    const keeping = batch.map(async ({ path, draft }) => {
      await draft.seal()
      const file = await keepFile({ path, draft }, caller.username)
      const { digest, size } = file
      if (store.holdsSmall && size <= maxSmallBytes) this.#held.push({ draft, digest, size })
      return file
    })
    this.#files.push(...(await allEnded(keeping)))
    await this.#releaseHeld()
  }

  // Keeps blobs without a file, to free their memory. Those of a rejected archive stay for a day.
  async #releaseHeld() {
    if (this.#held.reduce((sum, { size }) => sum + size, 0) < maxHeldBytes) return
    const held = this.#held.splice(0)
    const { catalog, caller } = this.#dependencies
    const contents = held.map(({ digest, size }) => ({ digest, size }))
    // The quota is checked for the files, once all have arrived.
    await catalog.writes.keepContents({ contents, callerId: caller.id, isLimited: false })
    for (const { draft } of held) {
      this.#drafts.delete(draft)
      await draft[Symbol.asyncDispose]()
    }
  }
}

// The size of a group commit.
const maxBatch = 64
const maxBatchBytes = 8_388_608
const maxHeldBytes = 8_388_608

/** How many of its faulty files, or of its missing contents, the refusal of a manifest names. */
const maxNamed = 1000

/** The media type of a stored content under a name, and its category. */
export async function detectType(store: BlobStore, name: string, digest: string) {
  const contentType = typeByName(name) ?? (await contentTypeOf(name, await readHead(store, digest)))
  return { contentType, category: categoryOf(contentType) }
}

async function readHead(store: BlobStore, digest: string) {
  await using blob = await store.open(digest)
  return await blob?.read(0, Math.min(headLength, blob.size))
}

const Manifest = z.strictObject({ files: z.custom<object>(isObject, 'must be an object') })

export const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits in lower case')

// GET of a tree names the sizes, too.
const ManifestFile = z.strictObject({ sha256: Digest, size: z.unknown().optional() })

// Not as a record, of which zod drops the key `__proto__`. Lazy: the caller stops at too many files.
function* digestsOf(body: unknown): Generator<{ name: string; digest: string }> {
  const { files } = parseInput(Manifest, body)
  const faults: Fault[] = []
  for (const [name, file] of Object.entries(files)) {
    const { data, error } = ManifestFile.safeParse(file, { error: describeIssue, reportInput: true })
    if (data) yield { name, digest: data.sha256 }
    else faults.push(...toFaults(error, pointerTo('/files', [name])))
    if (faults.length >= maxNamed) break
  }
  if (faults.length > 0) throw validationFailed(faults)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
