import { Readable } from 'node:stream'
import { callerOf } from '@domains-and-files/auth'
import {
  type App,
  afterQuery,
  answers,
  longListSchema,
  operation,
  pageOf,
  pageQuery,
  type RawBody,
} from '@domains-and-files/http'
import { create as createDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { changeActions } from '../../catalog/changes/change-entry.ts'
import type { PathState } from '../../catalog/history/past-files.ts'
import * as errors from '../../errors.ts'
import type { FileRow } from '../../files/file-record.ts'
import { frame, selectRanges } from '../../rfc9110/byte-ranges.ts'
import { evaluateConditions } from '../../rfc9110/conditional-requests.ts'
import { contentTag } from '../../rfc9110/content-negotiation.ts'
import type { ContentCache } from '../../serving/content-cache.ts'
import { joinPieces, openStream } from '../../serving/content-stream.ts'
import { requireWrittenPath } from '../callers.ts'
import { file, Sha256, Size, Username } from '../openapi-examples.ts'
import { ChangeId, Forgotten, forgottenIf } from './changes.ts'

interface Dependencies {
  catalog: Catalog
  cache: ContentCache
}

const tags = ['history']

const Path = z
  .string('must be given once')
  .meta({ description: 'path of a file, deleted or not', examples: [file.path] })

const State = z
  .object({
    change: z.int(),
    at: z.iso.datetime(),
    by: Username,
    action: z.enum(changeActions),
    sha256: Sha256.nullable().meta({ description: 'null: the change removed the file' }),
    size: Size.nullable(),
    content_type: z
      .string()
      .nullable()
      .meta({ examples: ['text/plain'] }),
    is_current: z.boolean(),
    forgotten: Forgotten,
  })
  .meta({ id: 'PathState' })

const getHistory = operation({
  access: 'viewer',
  folders: 'handler',
  optionalSlash: true,
  operationId: 'getHistory',
  summary: 'List every state of one path, newest first',
  description: 'Also of a file that is deleted. Old contents may be kept no more.',
  tags,
  querystring: z.strictObject({
    path: Path,
    ...pageQuery(50, 200),
    ...afterQuery(z.int().positive()),
  }),
  errors: [errors.invalidPath('a segment is empty'), errors.neverStored(file.path)],
  ...answers(200, 'One page of the states', longListSchema('history', State)),
})

const describePathState = ({ file: state, isCurrent, isForgotten, ...rest }: PathState) => ({
  ...rest,
  sha256: state?.digest ?? null,
  size: state?.size ?? null,
  content_type: state?.contentType ?? null,
  is_current: isCurrent,
  ...forgottenIf(isForgotten),
})

const getPastContent = operation({
  access: 'viewer',
  folders: 'handler',
  operationId: 'getPastContent',
  summary: 'Download a file as it was after a change',
  description:
    'Whether the change touched the path or not. Ranges and conditions as under /static.',
  tags,
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
})

/** Routes of what was at a path. */
export function registerHistoryRoutes(app: App, { catalog, cache }: Dependencies) {
  app.get('/api/history', getHistory, async (request, reply) => {
    const path = pathOf(request)
    const { page, page_size: pageSize, after } = request.query
    const found = await catalog.reads.states({ path, page, pageSize, after })
    if (found.total === 0) throw errors.neverStored(path)
    return { history: found.rows.map(describePathState), ...pageOf(request, reply, found) }
  })
  app.get('/api/history/content', getPastContent, async (request, reply) => {
    const path = pathOf(request)
    const { change } = request.query
    if (change > (await catalog.reads.lastChange())) throw errors.changeNotFound(change)
    const row = await catalog.reads.fileAt({ path, change })
    if (row) return sendPast(request, reply, { row, cache })
    const isGone = await catalog.reads.isGone({ path, change })
    throw isGone ? errors.historyGone() : errors.notThere(path, change)
  })
}

const pathOf = (request: FastifyRequest<{ Querystring: { path: string } }>): string =>
  requireWrittenPath(callerOf(request), request.query.path)

// Only the identity coding, and no date: the digest identifies the bytes.
async function sendPast(
  request: FastifyRequest,
  reply: FastifyReply,
  { row, cache }: { row: FileRow; cache: ContentCache },
) {
  const validators = { etag: contentTag(row.digest, 'identity'), changed: undefined }
  const selection = selectRanges(request, { validators, size: row.size })
  const verdict = evaluateConditions(request.headers, validators)
  if (verdict === 'failed') throw errors.preconditionFailed(row.path)
  reply.headers({
    etag: validators.etag,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
  })
  if (verdict === 'not modified') return reply.code(304).send()
  if (selection === 'unsatisfiable') throw errors.rangeNotSatisfiable(row.size)
  const content = await cache.content({ row }, 'identity')
  if (!content) throw errors.historyGone()
  const part = selection === 'whole' ? undefined : frame(selection, row)
  reply.code(part ? 206 : 200).headers({
    'content-type': row.contentType,
    'content-disposition': createDisposition(row.name),
    'content-length': String(part?.length ?? row.size),
    ...part?.headers,
  })
  const pieces = part?.pieces ?? [{ start: 0, end: row.size }]
  if (Buffer.isBuffer(content)) return reply.send(joinPieces(content, pieces))
  const stream = await openStream(content, pieces)
  const body = Readable.from(copies(stream))
  // Needed if the client left before the first chunk was read: `copies` has not started then.
  body.once('close', () => void stream.return())
  return reply.send(body)
}

// A chunk is valid until the next one is requested, and Readable reads ahead.
async function* copies(stream: RawBody) {
  for (;;) {
    const { done, value } = await stream.next()
    if (done) return
    yield Buffer.from(value)
  }
}
