// Not @fastify/static: its tags are weak, it answers several ranges whole and takes malformed ones (RFC 9110, 8.8 and 14).
import { type App, HttpError } from '@domains-and-files/http'
import { create as createDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { Compressor } from '../blobs/compressor.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import { fileNotFound, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { join, readPath } from '../files/file-path.ts'
import type { FileRow } from '../files/file-record.ts'
import { frame, readRanges } from '../rfc9110/byte-ranges.ts'
import {
  allowsParts,
  evaluateConditions,
  type Validators,
} from '../rfc9110/conditional-requests.ts'
import { chooseForm, preferForms, tagOf } from '../rfc9110/content-negotiation.ts'
import { ContentCache } from '../serving/content-cache.ts'
import {
  describeFile,
  headersOf,
  openToAll,
  type Served,
  wholeOf,
} from '../serving/content-headers.ts'
import { bodyOf, closeContent } from '../serving/content-stream.ts'
import { canOffload, handOver, type Offload } from '../serving/proxy-offload.ts'
import { type StaticQuery, staticSchema } from './static-schema.ts'

type Request = FastifyRequest & { params: { '*': string }; query: z.infer<typeof StaticQuery> }

interface Parts {
  store: BlobStore
  catalog: Catalog
  compressor: Compressor
  rules: Config['static']
}

/**
 * GET and HEAD /static/{path}, for everybody: conditions, ranges and content codings by RFC 9110. Every answer is of
 * the file as it was at some moment after the request came, whole, with the validators of those very bytes.
 * Returns the shelf that it serves from, for who counts.
 */
export function registerStaticRoutes(app: App, { rules, ...parts }: Parts): ContentCache {
  const describe = (row: FileRow) => describeFile(row, rules)
  const shelf = new ContentCache({ ...parts, memoryBytes: rules.memoryCacheBytes, describe })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/static/*',
    config: { access: 'public' },
    schema: staticSchema,
    // Before anything of the request is parsed further: what has no query and no body has nothing to parse.
    onRequest: (request, reply, done) => {
      if (!answerAtOnce(request, reply)) done()
    },
    handler: (request, reply) => answerInTime(request, reply),
  })
  return shelf

  // Most requests are for what is in memory, whole and without a question about its age: they wait for nothing.
  function answerAtOnce(request: Request, reply: FastifyReply): FastifyReply | undefined {
    const { method, headers } = request
    if (method !== 'GET' || rules.offload || request.url.includes('?')) return undefined
    if (judged.some((name) => headers[name] !== undefined)) return undefined
    const known = shelf.recall(request.params['*'], preferForms(headers['accept-encoding']))
    if (!known) return undefined
    const { served, form, bytes } = known
    const { whole, unchanged } = headersOf(served, form, bytes.length)
    const isKnown =
      evaluateConditions(headers, { etag: whole.etag, changed: served.changed }) === 'not modified'
    reply.removeHeader('vary')
    return isKnown ? reply.code(304).headers(unchanged).send() : reply.headers(whole).send(bytes)
  }

  async function answerInTime(request: Request, reply: FastifyReply) {
    // So a failure leaves; where there is a file, its own headers follow.
    reply.removeHeader('vary').headers({ ...openToAll, 'cache-control': 'no-store' })
    const target = readTarget(request.params['*'], rules.index)
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const served = await shelf.find(target.path)
      if (!served) return answerMissing(request, reply, target)
      const forms = attempt === 0 ? 'all' : 'identity'
      const offload = rules.offload
      const isAnswered = await answer(request, reply, { shelf, served, forms, offload })
      if (isAnswered) return reply
      // The bytes are gone: the file was replaced or deleted after its row was read, or a form was.
      shelf.forget(served)
    }
    throw new Error(`the blob of ${target.path} is missing`)
  }

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

// What an answer can depend on beside the content coding and If-None-Match.
const judged = ['range', 'if-match', 'if-modified-since', 'if-unmodified-since']

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

interface Answerable {
  shelf: ContentCache
  served: Served
  forms: 'all' | 'identity'
  offload: Offload | undefined
}

// False, and nothing is sent, when the bytes are not there any more. Never the reply itself: it can be awaited, and
// would be until the last byte has left.
async function answer(
  request: Request,
  reply: FastifyReply,
  { shelf, served, forms, offload }: Answerable,
): Promise<boolean> {
  const { row, changed } = served
  const { headers } = request
  if (served.headers.vary) reply.header('vary', served.headers.vary)

  const ranges = rangesOf(request, served)
  const isWhole = ranges === 'whole'
  const preferred = preferForms(headers['accept-encoding'])
  const isCoded = isWhole && forms === 'all' && preferred[0] !== 'identity'
  const form = isCoded ? chooseForm(preferred, (await shelf.forms(served)) ?? []) : 'identity'
  const etag = tagOf(row.digest, form)
  const verdict = evaluateConditions(headers, { etag, changed })
  if (verdict === 'failed') throw preconditionFailed(row.path)
  const known = { ...served.headers, etag, ...headersOfQuery(request.query, served) }
  if (verdict === 'not modified') {
    reply.code(304).headers(known).send()
    return true
  }
  if (ranges === 'unsatisfiable') throw rangeNotSatisfiable(row.size)

  const isLarge = offload !== undefined && row.size >= offload.leastBytes
  if (isLarge && canOffload(request, ranges, { to: offload.to, form })) {
    if (!(await shelf.has(served, form))) return false
    const { headers: own } = wholeOf(served.contentType, form, row.size)
    const place = { to: offload.to, digest: row.digest, form, isWhole }
    reply
      .removeHeader('cache-control')
      .headers(handOver({ ...known, ...own }, place))
      .send()
    return true
  }
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

// What the query adds. A `v` that is not of these bytes is somebody's old link: it changes nothing.
function headersOfQuery({ v, download }: Request['query'], { row }: Served) {
  const isImmutable =
    typeof v === 'string' && /^[0-9a-f]{8,}$/i.test(v) && row.digest.startsWith(v.toLowerCase())
  return {
    ...(isImmutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    ...(download === undefined ? {} : { 'content-disposition': createDisposition(row.name) }),
  }
}
