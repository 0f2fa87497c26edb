// Not @fastify/static: its tags are weak, it answers several ranges whole and takes malformed ones (RFC 9110, 8.8 and 14).
import { type App, HttpError } from '@house/http'
import { create as createDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { bodyOf, closeContent } from './body.ts'
import type { Catalog } from './catalog.ts'
import type { Compressor } from './compress.ts'
import { allowsParts, judge, type Validators } from './conditional.ts'
import type { Config } from './config.ts'
import { fileNotFound, preconditionFailed } from './errors.ts'
import type { FileRow } from './file-row.ts'
import { isCompressible } from './kind.ts'
import { preferForms, tagOf } from './negotiate.ts'
import { join, readPath } from './path.ts'
import { contentRange, frame, readRanges } from './ranges.ts'
import { isActive, type Served, Shelf } from './shelf.ts'
import type { Form, Store } from './store.ts'

const AtStaticPath = z.object({ '*': z.string().meta({ examples: ['img/logo.png'] }) })

const Query = z.looseObject({
  v: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({
      description: 'at least 8 leading hex digits of the SHA-256: this very content, for ever',
    }),
  download: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({ description: 'with any value or none: to be saved, not shown' }),
})

type Request = FastifyRequest & { query: z.infer<typeof Query> }

const bytes = (description: string) => ({
  description,
  content: { '*/*': { schema: z.any().meta({ type: 'string', format: 'binary' }) } },
})
const answers = {
  200: bytes('the file'),
  206: bytes('the parts of it that Range asks for'),
  302: z.undefined().meta({ description: 'a directory with an index: ask again with a slash' }),
  304: z.undefined().meta({ description: 'it is still as the conditions say' }),
}

interface Parts {
  store: Store
  catalog: Catalog
  compressor: Compressor
  rules: Config['static']
}

/**
 * GET and HEAD /static/{path}, for everybody: conditions, ranges and content codings by RFC 9110. Every answer is of
 * the file as it was at some moment after the request came, whole, with the validators of those very bytes.
 */
export function serveStatic(app: App, { rules, ...parts }: Parts) {
  const describe = (row: FileRow) => describeFile(row, rules)
  const shelf = new Shelf({ ...parts, memoryBytes: rules.memoryCacheBytes, describe })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/static/*',
    config: { access: 'public' },
    schema: {
      summary: 'The content of a file',
      description: 'Other query parameters are ignored.',
      tags: ['static'],
      params: AtStaticPath,
      querystring: Query,
      response: answers,
    },
    handler: async (request, reply) => {
      // So a failure leaves; where there is a file, its own headers follow.
      reply.removeHeader('vary').headers({ ...openToAll, 'cache-control': 'no-store' })
      const target = readTarget(request.params['*'], rules.index)
      for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
        const served = await shelf.find(target.path)
        if (!served) return answerMissing(request, reply, target)
        const forms = attempt === 0 ? 'all' : 'identity'
        const isAnswered = await answer(request, reply, { shelf, served, forms })
        if (isAnswered) return reply
        // The bytes are gone: the file was replaced or deleted after its row was read, or a form was.
        shelf.forget(served)
      }
      throw new Error(`the blob of ${target.path} is missing`)
    },
  })

  async function answerMissing(request: Request, reply: FastifyReply, target: Target) {
    const { path, isDirectory } = target
    if (isDirectory || !rules.index || !(await shelf.find(join(path, rules.index)))) {
      throw fileNotFound(path)
    }
    // Links in the index count from the directory, so it must end in a slash. Said in the words of the request.
    const [called = '', ...query] = (request.raw.url ?? '').split('?')
    const name = called.slice(called.lastIndexOf('/') + 1)
    return reply
      .code(302)
      .header('location', [`./${name}/`, ...query].join('?'))
      .send()
  }
}

// Between row and bytes a file can be replaced again and again, but not this often: then its bytes are lost.
const mostAttempts = 8

const openToAll = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'accept-ranges, content-disposition, content-encoding, content-length, content-range, etag, x-request-id',
  'cross-origin-resource-policy': 'cross-origin',
}

interface Target {
  path: string
  isDirectory: boolean
}

// A form that no path can have is refused; what is well-formed and cannot be there is simply not there.
function readTarget(text: string, index: string | undefined): Target {
  if (text.startsWith('/')) throw fileNotFound(text)
  const isDirectory = text === '' || text.endsWith('/')
  if (!isDirectory) return { path: readStored(text), isDirectory }
  const directory = text && readStored(text.slice(0, -1))
  if (!index) throw fileNotFound(text)
  return { path: join(directory, index), isDirectory }
}

// Reserved names are refused where files are stored; where they are read there is nothing.
function readStored(text: string): string {
  try {
    return readPath(text)
  } catch (error) {
    if (error instanceof HttpError && error.code === 'reserved_path') throw fileNotFound(text)
    throw error
  }
}

function describeFile(row: FileRow, rules: Config['static']): Served {
  const isText = isCompressible(row.contentType)
  // Not later than now, whatever the clock did since (RFC 9110, 8.8.2.1).
  const changed = Math.floor(Math.min(Date.parse(row.updatedAt), Date.now()) / 1000)
  return {
    row,
    changed,
    isCompressible: isText,
    contentType: labelOf(row.contentType),
    headers: {
      'accept-ranges': 'bytes',
      'cache-control': rules.cacheControl,
      'last-modified': new Date(changed * 1000).toUTCString(),
      ...(isText ? { vary: 'Accept-Encoding' } : {}),
      ...(rules.csp && isActive(row.contentType) ? { 'content-security-policy': rules.csp } : {}),
    },
  }
}

// Without a label browsers take text for Windows-1252. HTML and XML say themselves what they are written in.
const labelOf = (contentType: string) =>
  contentType.startsWith('text/') && !isActive(contentType)
    ? `${contentType}; charset=utf-8`
    : contentType

interface Answerable {
  shelf: Shelf
  served: Served
  forms: 'all' | 'identity'
}

// False, and nothing is sent, when the bytes are not there any more. Never the reply itself: it can be awaited, and
// would be until the last byte has left.
async function answer(
  request: Request,
  reply: FastifyReply,
  { shelf, served, forms }: Answerable,
): Promise<boolean> {
  const { row, changed } = served
  const { headers } = request
  if (served.headers.vary) reply.header('vary', served.headers.vary)

  const ranges = rangesOf(request, served)
  const isWhole = ranges === 'whole'
  const kept = isWhole && forms === 'all' ? await shelf.forms(served) : undefined
  const form = chooseForm(headers['accept-encoding'], kept ?? [])
  const etag = tagOf(row.digest, form)
  const verdict = judge(headers, { etag, changed })
  if (verdict === 'failed') throw preconditionFailed(row.path)
  const known = { ...served.headers, etag, ...headersOfQuery(request.query, served) }
  if (verdict === 'not modified') {
    reply.code(304).headers(known).send()
    return true
  }
  if (ranges === 'unsatisfiable') throw rangeNotSatisfiable(row.size)

  const content = await shelf.content(served, form)
  if (!content) return false
  const size = Buffer.isBuffer(content) ? content.length : content.size
  const parts = isWhole
    ? wholeOf(served.contentType, form, size)
    : frame(ranges, { contentType: served.contentType, size })
  const all = { ...known, ...parts.headers, 'content-length': parts.length }
  if (request.method === 'HEAD') {
    await closeContent(content)
    reply.headers(all).send()
    return true
  }
  const body = await bodyOf(content, parts.pieces, row.digest)
  reply
    .code(isWhole ? 200 : 206)
    .headers(all)
    .send(body)
  return true
}

// Parts are those of the identity form, whatever else the client takes. Only GET has parts (RFC 9110, 14.2).
function rangesOf({ method, headers }: Request, { row, changed }: Served) {
  if (method !== 'GET' || headers.range === undefined) return 'whole'
  const own: Validators = { etag: tagOf(row.digest, 'identity'), changed }
  return allowsParts(headers['if-range']?.toString(), own)
    ? readRanges(headers.range, row.size)
    : 'whole'
}

const chooseForm = (acceptEncoding: string | undefined, kept: readonly Form[]): Form =>
  preferForms(acceptEncoding).find((form) => kept.includes(form)) ?? 'identity'

const wholeOf = (contentType: string, form: Form, size: number) => ({
  headers: {
    'content-type': contentType,
    ...(form === 'identity' ? {} : { 'content-encoding': form }),
  },
  pieces: [{ start: 0, end: size }],
  length: size,
})

// What the query adds. A `v` that is not of these bytes is somebody's old link: it changes nothing.
function headersOfQuery({ v, download }: Request['query'], { row }: Served) {
  const isImmutable =
    typeof v === 'string' && /^[0-9a-f]{8,}$/i.test(v) && row.digest.startsWith(v.toLowerCase())
  return {
    ...(isImmutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    ...(download === undefined ? {} : { 'content-disposition': createDisposition(row.name) }),
  }
}

const rangeNotSatisfiable = (size: number) =>
  new HttpError(
    416,
    'range_not_satisfiable',
    `The file has ${size} bytes: none of them is in the range`,
    { headers: { 'accept-ranges': 'bytes', 'content-range': contentRange(undefined, size) } },
  )
