import { validationFailed } from '@domains-and-files/http'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { ContentReader } from '../../catalog/queries.ts'
import { contentsMissing } from '../../errors.ts'
import { categoryOf, contentTypeOf, headLength, typeByName } from '../../files/media-type.ts'
import { nameOf } from '../../files/path-segments.ts'
import type { ArrivedFile, TreePaths } from './receive-tree.ts'

interface Dependencies {
  catalog: Catalog
  store: BlobStore
}

const digestPattern = /^[0-9a-f]{64}$/

/**
 * The files of `{ "files": { "path": { "sha256" } } }`, whose contents must be stored, and known to the reader.
 * @throws {HttpError} `validation_failed`, `invalid_archive`, `tree_too_large` or `contents_missing`.
 */
export async function readManifest(
  body: object,
  paths: TreePaths,
  { catalog, store, reader }: Dependencies & { reader: ContentReader },
): Promise<ArrivedFile[]> {
  const named = digestsOf(body).flatMap(({ name, digest }) => {
    const path = paths.add(name)
    return path === undefined ? [] : [{ path, digest }]
  })
  const digests = new Set(named.map(({ digest }) => digest))
  const sizes = await catalog.contentSizes([...digests], reader)
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

function digestsOf(body: object): { name: string; digest: string }[] {
  checkKeys(body, ['files'], '')
  const files: unknown = 'files' in body ? body.files : undefined
  if (!isObject(files)) throw fault('/files', 'must be an object')
  return Object.entries(files).map(([name, file]) => {
    const pointer = `/files/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!isObject(file)) throw fault(pointer, 'must be an object')
    // GET of a tree names the sizes, too.
    checkKeys(file, ['sha256', 'size'], pointer)
    const digest = 'sha256' in file ? file.sha256 : undefined
    if (typeof digest !== 'string' || !digestPattern.test(digest))
      throw fault(`${pointer}/sha256`, 'must be 64 hex digits in lower case')
    return { name, digest }
  })
}

function checkKeys(value: object, known: string[], pointer: string) {
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined) throw fault(`${pointer}/${unknown}`, 'is not known here')
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fault = (path: string, message: string) => validationFailed([{ path, message }])
