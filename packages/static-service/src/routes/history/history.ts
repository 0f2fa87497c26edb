import { Readable } from 'node:stream'
import {
  type App,
  afterQuery,
  answers,
  longListSchema,
  Next,
  operations,
  Pagination,
  pageOf,
  pageQuery,
  type RawBody,
  type RawResponse,
} from '@domains-and-files/http'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { PathState } from '../../catalog/history/change-log.ts'
import { changeActions, type FileRow } from '../../catalog/tables.ts'
import * as errors from '../../errors.ts'
import type { ServedFile } from '../../serving/served-file.ts'
import type { StaticHandler } from '../../serving/static-handler.ts'
import { requireWrittenPath } from '../callers.ts'
import { ListQuery, prefixQuery } from '../files/browse.ts'
import type { FileDependencies } from '../files/store-files.ts'
import { FileList, file, Sha256, Size, Username, VersionName } from '../schemas.ts'
import { ChangedFile, ChangeId, describeChanged, Forgotten, forgottenIf } from './changes.ts'
import { requireVersion } from './versions.ts'

const Path = z
  .string('must be given once')
  .meta({ description: 'path of a file, deleted or not', examples: [file.path] })

const State = z
  .object({
    change: z.int(),
    at: z.iso.datetime(),
    by: Username,
    action: z.enum(changeActions),
    sha256: Sha256.nullable().describe('null: the change removed the file'),
    size: Size.nullable(),
    content_type: z.nullable(z.string()).meta({ examples: ['text/plain'] }),
    is_current: z.boolean(),
    forgotten: Forgotten,
  })
  .meta({ id: 'PathState' })

const describePathState = ({ file: state, isCurrent, isForgotten, ...rest }: PathState) => ({
  ...rest,
  sha256: state?.digest ?? null,
  size: state?.size ?? null,
  content_type: state?.contentType ?? null,
  is_current: isCurrent,
  ...forgottenIf(isForgotten),
})

const showing = {
  folders: 'prefix',
  optionalSlash: true,
  tags: ['versions'],
  params: z.object({ version: VersionName }),
  errors: [errors.versionNotFound('1.4.0'), errors.historyGone()],
} as const

const routes = operations({
  shared: { access: 'viewer', folders: 'handler', tags: ['history'] },
  getHistory: {
    optionalSlash: true,
    summary: 'List every state of one path, newest first',
    description: 'Also of a file that is deleted. Old contents may be kept no more.',
    querystring: z.strictObject({
      path: Path,
      ...pageQuery(50, 200),
      ...afterQuery(z.int().positive()),
    }),
    errors: [errors.invalidPath('a segment is empty'), errors.neverStored(file.path)],
    ...answers(200, 'One page of the states', longListSchema('history', State)),
  },
  getPastContent: {
    summary: 'Download a file as it was after a change',
    description: 'Whether the change touched the path or not. Ranges and conditions as under /static.',
    querystring: z.strictObject({ path: Path, change: ChangeId }),
    errors: [
      errors.invalidPath('a segment is empty'),
      errors.notThere(file.path, 4711),
      errors.changeNotFound(4711),
      errors.historyGone(),
      errors.preconditionFailed(file.path),
      errors.rangeNotSatisfiable(file.size),
    ],
    responses: {
      200: { description: 'The bytes, with their content type', content: '*/*' },
      206: { description: 'The selected ranges', content: '*/*' },
      304: { description: 'The bytes are those of the condition' },
    },
  },
  listVersionFiles: {
    ...showing,
    summary: 'List the files that a version shows',
    description: 'As the list of files, at the moment of the version.',
    querystring: ListQuery,
    ...answers(200, 'One page of the list', FileList),
  },
  compareVersions: {
    ...showing,
    summary: 'List what differs between a version and another, or the current files',
    description:
      'By path: a page holds the three kinds together. `before` is the version of the URL, `after` the other.',
    querystring: z.strictObject({
      ...pageQuery(50, 200),
      ...afterQuery(z.string()),
      prefix: prefixQuery('only files below this directory'),
      to: z
        .string('must be given once')
        .default('current')
        .describe('name of the other version; `current`: the files as they are'),
    }),
    ...answers(
      200,
      'One page of the differences',
      z.object({
        added: z.array(ChangedFile),
        removed: z.array(ChangedFile).meta({ examples: [[]] }),
        changed: z.array(ChangedFile).meta({ examples: [[]] }),
        pagination: Pagination,
        next: Next,
      }),
    ),
  },
})

interface Dependencies extends Pick<FileDependencies, 'catalog' | 'describe'> {
  handler: StaticHandler
  /** A past file as it is served. */
  past: (row: FileRow) => ServedFile
}

/** Routes of what was at a path, and of the files that versions show. */
export function registerHistoryRoutes(app: App, { catalog, describe, handler, past }: Dependencies) {
  app.get('/api/history', routes.getHistory, async (request, reply) => {
    const path = requireWrittenPath(request.caller, request.query.path)
    const found = await catalog.reads.states({ ...request.query, path })
    if (found.total === 0) throw errors.neverStored(path)
    return { history: found.rows.map(describePathState), ...pageOf(request, reply, found) }
  })
  app.get('/api/history/content', routes.getPastContent, async (request, reply) => {
    const path = requireWrittenPath(request.caller, request.query.path)
    const find = async () => past(await catalog.reads.fileAt({ ...request.query, path }))
    const target = { path, isDirectory: false, query: new URLSearchParams('download') }
    return send(reply, await handler.respondWith(request.raw, target, { find, admit: async () => undefined }))
  })
  app.get('/api/versions/:version/files', routes.listVersionFiles, async (request, reply) => {
    const { changeId: change } = await requireVersion(catalog, request.params.version)
    const found = await catalog.reads.listAt({ ...request.query, change })
    return { files: await describe(found.rows), ...pageOf(request, reply, found) }
  })
  app.get('/api/versions/:version/diff', routes.compareVersions, async (request, reply) => {
    const { prefix: directory, to: name, ...query } = request.query
    const { changeId: from } = await requireVersion(catalog, request.params.version)
    const to = name === 'current' ? undefined : (await requireVersion(catalog, name)).changeId
    const { rows: files, ...found } = await catalog.reads.diff({ ...query, directory, from, to })
    return {
      added: files.filter(({ before }) => !before).map(describeChanged),
      removed: files.filter((file) => !file.after).map(describeChanged),
      changed: files.filter((file) => file.before && file.after).map(describeChanged),
      ...pageOf(request, reply, found),
    }
  })
}

// A response of `StaticHandler`, through the framework.
function send(reply: FastifyReply, { head, body }: RawResponse) {
  reply.code(head.status)
  // The first one is the request id. Which origins may read this, CORS_ORIGIN says, as of the rest of the API.
  for (let at = 2; at < head.headers.length; at += 2) {
    const [name = '', value] = head.headers.slice(at, at + 2)
    if (!name.startsWith('access-control-')) reply.header(name, value)
  }
  if (typeof body === 'string') return reply.send(Buffer.from(body, 'latin1'))
  // To HEAD, the framework takes no body for one of no bytes.
  if (!body) return reply.send(reply.request.method === 'HEAD' ? Readable.from([]) : undefined)
  if (Buffer.isBuffer(body)) return reply.send(body)
  const copy = Readable.from(copies(body))
  // Needed if the client left before the first chunk was read: `copies` has not started then.
  copy.once('close', () => void body.return?.())
  return reply.send(copy)
}

// A chunk is valid until the next one is requested, and Readable reads ahead.
async function* copies(body: RawBody) {
  for await (const chunk of { [Symbol.asyncIterator]: () => body }) yield Buffer.from(chunk)
}
