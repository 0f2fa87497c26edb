import { readmit } from '@domains-and-files/auth'
import {
  type App,
  answers,
  bodyChunks,
  booleanQuery,
  HttpError,
  malformedBody,
  operations,
  parseInput,
  textOf,
  unsupportedCoding,
} from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { decoderBytes, isJsonObject, peek } from '../../archives/read-archive.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { TreeSource } from '../../catalog/changes/tree-changes.ts'
import * as errors from '../../errors.ts'
import { checkDigests } from '../../files/content-digest.ts'
import { actorOf, requireWrittenDirectory } from '../callers.ts'
import { conditionsOf, type FileDependencies, rawBody, stage } from '../files/store-files.ts'
import { Change, describeChange } from '../history/changes.ts'
import { NewVersion } from '../history/versions.ts'
import { file, fileTooLarge, noRoom } from '../schemas.ts'
import { At, atErrors, readTreePath, TreePath, treePathErrors, treeTag } from './get-tree.ts'
import { Digest, TreeArrivals } from './receive-tree.ts'

const TreeQuery = z
  .strictObject({
    mode: z
      .enum(['replace', 'merge'], 'must be replace or merge')
      .default('replace')
      .describe('merge: files that the body does not name stay'),
    version: NewVersion.shape.version.optional().describe('records this version with the change'),
    changelog: NewVersion.shape.changelog.default('').describe('of the version'),
    dry_run: booleanQuery(false, 'true: only says what would change'),
  })
  .refine(({ version, changelog }) => version !== undefined || changelog === '', {
    path: ['changelog'],
    message: 'needs a version',
  })

const TreeResult = z
  .object({
    change: Change.nullable().describe('null: nothing was changed'),
    prefix: z.string().meta({ examples: ['site/'] }),
    files: z.int().describe('in the tree'),
    ...Change.pick({ added: true, replaced: true, removed: true }).shape,
    unchanged: z.int(),
    bytes_received: z.int().describe('of the body'),
  })
  .meta({ id: 'TreeResult' })

const routes = operations({
  shared: { access: 'editor', folders: 'handler', tags: ['trees'] },
  putTree: {
    summary: 'Make a directory exactly what the body is, in one step',
    description:
      'The body is one of: an archive (`tar`, also with gzip or zstd, or `zip`); a manifest `{ "files": { "path": { "sha256" } } }` of contents that are stored; `{ "from": "previews/pr-12/", "at" }`, another directory or the same, as it is or was. Its type is looked at, not believed. Readers of /static see all of the old tree or all of the new one. Equal files stay as they are.',
    params: TreePath,
    querystring: TreeQuery,
    requestHeaders: {
      'if-match': { description: 'Only if the tree has this ETag', example: treeTag.etag.example },
      'if-none-match': { description: '`*`: only if there is no file yet', example: '*' },
    },
    errors: [
      ...treePathErrors,
      errors.invalidArchive('its name contains ..', '../notes'),
      malformedBody('The body is not valid JSON'),
      unsupportedCoding(),
      errors.directoryNotFound('previews/pr-12'),
      errors.pathConflict('notes'),
      ...atErrors,
      errors.contentsMissing([file.sha256]),
      errors.versionExists('1.4.0'),
      errors.treeChanged('notes'),
      errors.treeTooLarge('20000 files'),
      ...noRoom,
    ],
    consumes: ['application/x-tar', 'application/gzip', 'application/zstd', 'application/zip', 'application/json'],
    body: rawBody('{ "from": "previews/pr-12/" }'),
    ...answers(200, 'The tree is what the body is', TreeResult, treeTag),
  },
  putContent: {
    folders: 'none',
    summary: 'Store a content that a manifest is going to name',
    description:
      'It is kept for a day without a file, for manifests of the same caller. The body is the content, of any type.',
    params: z.object({ sha256: Digest.meta({ description: 'SHA-256 of the body', examples: [file.sha256] }) }),
    errors: [errors.digestMismatch('its name'), fileTooLarge, unsupportedCoding(), ...noRoom],
    consumes: ['application/octet-stream'],
    body: rawBody('Hello, files\n'),
    responses: { 201: { description: 'Stored' }, 204: { description: 'It was stored already' } },
  },
})

/** PUT of trees and contents, in the scope of `registerRawBodies`. */
export function registerPutTreeRoutes(app: App, dependencies: FileDependencies) {
  const { store, catalog, limits } = dependencies
  app.put('/api/contents/:sha256', routes.putContent, async (request, reply) => {
    await limits.checkLength('', request.headers) // It replaces no file.
    await using draft = store.draft()
    await stage(bodyChunks(request.raw), draft, { limits, path: '' })
    const content = await draft.keep()
    if (content.digest !== request.params.sha256) throw errors.digestMismatch('its name')
    const caller = await readmit(request)
    const known = await catalog.reads.contentSizes({ ...caller, digests: [content.digest] })
    await catalog.writes.keepContents({ contents: [content], callerId: caller.id, isLimited: true })
    return reply.code(known.size > 0 ? 204 : 201).send(undefined)
  })
  app.put('/api/trees/*', routes.putTree, async (request, reply) => {
    const directory = readTreePath(request)
    await using arrivals = new TreeArrivals({ ...dependencies, caller: request.caller, directory })
    const { source, bytes } = await receive(request, arrivals, catalog)
    await readmit(request)
    const { mode, version, changelog, dry_run: isDryRun } = request.query
    const actor = actorOf(request)
    const { by: createdBy, requestId } = actor
    const { rows, etag, change, ...counts } = await catalog.writes.replaceTree({
      actor,
      directory,
      source,
      isDryRun,
      isMerge: mode === 'merge',
      conditions: conditionsOf(request.headers),
      version: version === undefined ? undefined : { version, changelog, createdBy, requestId },
      maxFiles: dependencies.trees.maxFiles,
    })
    if (!isDryRun) for (const row of rows) dependencies.onStored(row)
    return reply.header('etag', etag).send({
      change: change && describeChange(change),
      prefix: directory && `${directory}/`,
      ...counts,
      bytes_received: bytes,
    })
  })
}

/** The files that a body describes. @throws {HttpError} what `putTree` names. */
async function receive(
  request: FastifyRequest,
  arrivals: TreeArrivals,
  catalog: Catalog,
): Promise<{ source: TreeSource; bytes: number }> {
  const { raw } = request
  const digests = checkDigests(raw)
  let bytes = 0
  async function* checked() {
    for await (const chunk of bodyChunks(raw)) {
      bytes += chunk.length
      digests.update(chunk)
      yield chunk
    }
  }
  try {
    const body = await peek(checked())
    request.server.requestBodies.hold(raw, decoderBytes(body))
    const source = isJsonObject(body)
      ? await readSource(request, arrivals, { body: await readJson(request, body.chunks), catalog })
      : { files: await arrivals.receive(body), areStored: false }
    digests.end()
    return { source, bytes }
  } finally {
    raw.resume() // Not every reader of archives closes its source.
  }
}

const FromTree = z.strictObject({
  from: z.string().refine((text) => text === '' || text.endsWith('/'), 'must be a directory with a trailing slash'),
  // Ids of changes are numbers in JSON.
  at: z.int().min(0).transform(String).or(At).optional(),
})

async function readSource(
  request: FastifyRequest,
  arrivals: TreeArrivals,
  { body, catalog }: { body: unknown; catalog: Catalog },
): Promise<TreeSource> {
  if ('files' in Object(body)) return { files: await arrivals.readManifest(body), areStored: true }
  const { from: written, at } = parseInput(FromTree, body)
  const from = requireWrittenDirectory(request.caller, written)
  return { from, change: at === undefined ? at : await catalog.reads.changeAt(at) }
}

// Twenty thousand paths of usual length many times over; it counts as memory of request bodies.
const maxManifestBytes = 33_554_432

async function readJson(request: FastifyRequest, chunks: AsyncIterable<Buffer>): Promise<unknown> {
  const read: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxManifestBytes) throw errors.treeTooLarge(`${maxManifestBytes} bytes of JSON`)
    request.server.requestBodies.hold(request.raw, chunk.length + chunkOverhead)
    read.push(chunk)
  }
  const text = textOf(Buffer.concat(read), request)
  try {
    const body = JSON.parse(text)
    // The parser has kept the last of two equal names.
    const digests = text.match(/"sha256"\s*:\s*"/g) ?? []
    if (body?.files && digests.length > Object.keys(body.files).length)
      throw errors.invalidArchive('a name is there twice')
    return body
  } catch (error) {
    throw error instanceof HttpError ? error : malformedBody('The body is not valid JSON')
  }
}

// A chunk of a single byte takes some 250.
const chunkOverhead = 256
