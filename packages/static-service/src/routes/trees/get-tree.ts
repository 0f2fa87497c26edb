import { Readable } from 'node:stream'
import { type App, isNotModified, operations } from '@domains-and-files/http'
import { type BlobRef, verifiedPieces } from '@domains-and-files/persistence'
import { create as createDisposition } from 'content-disposition'
import type { FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { z } from 'zod'
import { type ArchivedFile, writeTar, writeZip } from '../../archives/write-archive.ts'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { readTreePages, type TreeFile, type TreeState } from '../../catalog/history/past-files.ts'
import * as errors from '../../errors.ts'
import { hasEncodedSlash, nameOf, readPath } from '../../files/file-path.ts'
import { requireDirectory } from '../callers.ts'
import type { FileDependencies } from '../files/store-files.ts'
import { file, ifNoneMatchHeader, restOfUrl, Sha256, Size } from '../schemas.ts'

export const TreePath = restOfUrl('a directory with a trailing slash; empty: the whole store', 'site/')

export const treePathErrors = [errors.invalidPath('a tree is a directory, which ends in a slash')]

/**
 * The directory that the URL of a tree names, without its trailing slash; the root is empty.
 * @throws {HttpError} `invalid_path`, `reserved_path`, or `directory_not_found` outside the caller's folders.
 */
export function readTreePath(request: FastifyRequest): string {
  const { '*': decoded } = TreePath.parse(request.params)
  if (hasEncodedSlash(request.url)) throw errors.invalidPath('its slashes are sent as /, not as %2F', decoded)
  if (decoded !== '' && !decoded.endsWith('/'))
    throw errors.invalidPath('a tree is a directory, which ends in a slash', decoded)
  return requireDirectory(request.caller, decoded && readPath(decoded.slice(0, -1)))
}

const isMoment = (text: string) =>
  /^[0-9A-Za-z._+-]{1,64}$/.test(text) || z.iso.datetime({ offset: true }).safeParse(text.toUpperCase()).success

export const At = z
  .string('must be given once')
  .refine(isMoment, 'must be a change id, a version or an RFC 3339 instant such as 2027-01-15T09:30:00Z')
  .meta({
    description: 'as it was then: a change id (digits alone), a version or an RFC 3339 instant',
    examples: ['4711'],
  })

export const atErrors = [errors.versionNotFound('1.4.0'), errors.changeNotFound(4711), errors.historyGone()]

export const treeTag = {
  etag: {
    description: 'Of all names and contents of the tree: the same for each of its forms',
    example: '"c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"',
  },
}

const formats = {
  'application/x-tar': { extension: 'tar', write: writeTar },
  'application/zip': { extension: 'zip', write: writeZip },
  'application/json': undefined,
}

type Format = keyof typeof formats

const TreeFiles = z
  .object({
    prefix: z.string().meta({ examples: ['site/'] }),
    files: z
      .record(z.string(), z.object({ sha256: Sha256, size: Size }))
      .meta({ examples: [{ 'index.html': { sha256: file.sha256, size: file.size } }] }),
  })
  .meta({ id: 'TreeFiles' })

const routes = operations({
  shared: { access: 'viewer', folders: 'handler', tags: ['trees'] },
  getTreeFiles: {
    summary: 'Download a directory as one thing',
    description:
      'As `application/x-tar` (default), `application/zip` or `application/json`, by Accept. Reproducible to the byte: paths are sorted, and each file has its own time.',
    params: TreePath,
    querystring: z.strictObject({ at: At.optional() }),
    requestHeaders: {
      ...ifNoneMatchHeader,
      accept: { description: 'The form of the tree', example: 'application/zip' },
    },
    errors: [...treePathErrors, errors.directoryNotFound('site'), ...atErrors],
    responses: {
      200: { description: 'The tree', headers: treeTag, content: '*/*', body: TreeFiles },
      304: { description: 'Not modified since the tree of If-None-Match', headers: treeTag },
    },
  },
})

export function registerGetTreeRoute(app: App, { catalog, store }: FileDependencies) {
  app.get('/api/trees/*', routes.getTreeFiles, async (request, reply) => {
    const directory = readTreePath(request)
    const { at } = request.query
    const change = at === undefined ? undefined : await catalog.reads.changeAt(at)
    const tree = await catalog.reads.openTree({ directory, at: change })
    const { files, etag } = tree
    if (files === 0) throw errors.directoryNotFound(directory)
    reply.header('etag', etag).header('cache-control', 'private, no-cache').header('vary', 'Accept')
    if (isNotModified(request, etag)) return reply.code(304).send(undefined)
    const type = formatOf(request.headers.accept)
    const pages = pagesOf(catalog, directory, tree)
    const archive = formats[type]
    reply.type(archive ? type : 'application/json; charset=utf-8')
    if (!archive) return reply.send(Readable.from(writeJson(directory, pages)) as never)
    reply.header('content-disposition', createDisposition(`${nameOf(directory) || 'files'}.${archive.extension}`))
    return reply.send(archive.write(archived(pages, store)) as never) // Streams have no schema.
  })
}

function formatOf(accept: string | undefined): Format {
  const available = Object.keys(formats) as Format[] // As they are written above.
  const best = new Negotiator({ headers: { accept } }).mediaType(available)
  return available.find((format) => format === best) ?? 'application/x-tar'
}

/** The pages of an opened tree. @throws {HttpError} `history_gone` if files of it are gone: a begun response is cut off. */
async function* pagesOf(
  { reads }: Catalog,
  directory: string,
  { etag, change }: TreeState & { change: number },
): AsyncGenerator<TreeFile[]> {
  const found = yield* readTreePages((query) => reads.filesAt(query), { directory, change })
  if (found.etag !== etag) throw errors.historyGone()
}

async function* archived(pages: AsyncIterable<TreeFile[]>, store: BlobStore): AsyncGenerator<ArchivedFile> {
  for await (const page of pages) {
    for (const file of page) yield { ...file, content: () => readBlob(store, file) }
  }
}

async function* readBlob(store: BlobStore, ref: BlobRef): AsyncGenerator<Buffer> {
  await using blob = await store.open(ref.digest)
  yield* verifiedPieces(blob, ref, pieceBytes)
}

const pieceBytes = 262_144

async function* writeJson(directory: string, pages: AsyncIterable<TreeFile[]>) {
  yield `{"prefix":${JSON.stringify(directory && `${directory}/`)},"files":{`
  let separator = ''
  for await (const page of pages) {
    const members = page.map(
      ({ name, digest, size }) => `${JSON.stringify(name)}:${JSON.stringify({ sha256: digest, size })}`,
    )
    yield separator + members.join(',')
    separator = ','
  }
  yield '}}\n'
}
