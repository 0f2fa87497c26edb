// Not @fastify/static: its tags are weak, it answers several ranges whole and takes malformed ones (RFC 9110, 8.8 and 14).
import { type App, HttpError } from '@domains-and-files/http'
import { create as createDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { ContentCoding } from '../blobs/blob-path.ts'
import type { Config } from '../config.ts'
import { encodedSlash, fileNotFound, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { hasEncodedSlash, join, readPath } from '../files/file-path.ts'
import { frame, type Slice } from '../rfc9110/byte-ranges.ts'
import { evaluateConditions } from '../rfc9110/conditional-requests.ts'
import { chooseCoding, preferCodings } from '../rfc9110/content-negotiation.ts'
import type { ContentCache } from '../serving/content-cache.ts'
import { bodyOf } from '../serving/content-stream.ts'
import { canOffload, hasFile, type Offload, offloadHeaders } from '../serving/proxy-offload.ts'
import { selectRanges } from '../serving/select-ranges.ts'
import {
  commonHeaders,
  crossOriginHeaders,
  representationHeaders,
  type ServedFile,
  validatorsOf,
} from '../serving/served-file.ts'
import {
  cleanUrlTarget,
  indexOf,
  notFoundPage,
  type StaticPolicies,
  siteOf,
} from '../serving/site-policy.ts'
import { type StaticQuery, staticSchema } from './static-schema.ts'

type Request = FastifyRequest & { params: { '*': string }; query: z.infer<typeof StaticQuery> }

interface Dependencies {
  cache: ContentCache
  rules: StaticPolicies & Pick<Config['static'], 'offload'>
  /** Milliseconds since 1970; passed in by tests. */
  now?: () => number
}

/**
 * GET and HEAD /static/{path}: conditions, ranges and content codings by RFC 9110. Every response is complete, of the file
 * as it was at one moment after the request arrived, with the validators of those bytes. `CachedResponses` answers most
 * requests before this route.
 */
export function registerStaticRoutes(app: App, dependencies: Dependencies): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/static/*',
    config: { access: 'public' },
    schema: staticSchema,
    handler: (request, reply) => serveFile(request, reply, dependencies),
  })
}

async function serveFile(
  request: Request,
  reply: FastifyReply,
  { cache, rules, now = Date.now }: Dependencies,
) {
  // CORS_ORIGIN is for the API: its headers are replaced, and so is their order.
  for (const name of ['vary', ...Object.keys(crossOriginHeaders)]) reply.removeHeader(name)
  // The headers of a failure; those of a file replace them.
  reply.headers({ ...crossOriginHeaders, 'cache-control': 'no-store' })
  const target = readTarget(request, rules)
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const file = await findFile(cache, target, {
      rules,
      request: attempt === 0 ? request.raw : undefined,
    })
    if (!file) return respondMissing(request, reply, { target, cache, rules })
    const coding = attempt === 0 ? 'negotiated' : 'identity'
    const source = { cache, file, coding, offload: rules.offload, now: now() } as const
    if (await respond(request, reply, source)) return reply
    // The file was replaced or deleted after its row was read, or a compressed form was.
    cache.invalidate(file)
  }
  throw new Error(`the blob of ${target.path} is missing`)
}

// A file can be replaced again and again between row and bytes, but not this often: then its bytes are lost.
const maxAttempts = 8

interface Target {
  path: string
  isDirectory: boolean
}

async function findFile(
  cache: ContentCache,
  { path, isDirectory }: Target,
  { rules, request }: { rules: StaticPolicies; request: object | undefined },
) {
  const file = await cache.find(path, request)
  const cleanUrl = file || isDirectory ? undefined : cleanUrlTarget(path, rules)
  return cleanUrl === undefined ? file : cache.find(cleanUrl)
}

// An invalid path is refused; a valid one that cannot be stored is simply absent.
function readTarget({ params: { '*': text }, url }: Request, rules: StaticPolicies): Target {
  // One file has one URL: an encoded slash is no separator.
  if (hasEncodedSlash(url)) throw encodedSlash(text)
  if (text.startsWith('/')) throw fileNotFound(text)
  const isDirectory = text === '' || text.endsWith('/')
  if (!isDirectory) return { path: readStoredPath(text), isDirectory }
  const directory = text && readStoredPath(text.slice(0, -1))
  const index = indexOf(directory, rules)
  if (!index) throw fileNotFound(text || '/')
  return { path: join(directory, index), isDirectory }
}

// Reserved names cannot be stored, so they are absent here.
function readStoredPath(text: string): string {
  try {
    return readPath(text)
  } catch (error) {
    if (error instanceof HttpError && error.code === 'reserved_path') throw fileNotFound(text)
    throw error
  }
}

interface MissingFile {
  target: Target
  cache: ContentCache
  rules: StaticPolicies
}

// Redirects to the index of a directory, or responds with the site's own page for missing paths.
async function respondMissing(
  request: Request,
  reply: FastifyReply,
  { target: { path, isDirectory }, cache, rules }: MissingFile,
) {
  const index = isDirectory ? undefined : indexOf(path, rules)
  if (index && (await cache.find(join(path, index)))) return redirectToDirectory(request, reply)
  const page = notFoundPage(path, rules)
  const file = page === undefined ? undefined : await cache.find(page)
  if (!file) throw fileNotFound(path)
  const { csp } = siteOf(path, rules) ?? {}
  const headers: Record<string, string> = csp ? { 'content-security-policy': csp } : {}
  const selected = { cache, file, coding: 'identity', headers, status: 404 } as const
  const isSent =
    request.method === 'HEAD'
      ? await sendHead(reply, selected)
      : await sendContent(reply, selected, 'whole')
  if (!isSent) throw fileNotFound(path)
  return reply
}

// Relative links in an index resolve against its directory, so the URL must end in a slash.
function redirectToDirectory(request: Request, reply: FastifyReply) {
  const [pathname = '', ...query] = (request.raw.url ?? '').split('?')
  const name = pathname.slice(pathname.lastIndexOf('/') + 1)
  return reply
    .code(302)
    .header('location', [`./${name}/`, ...query].join('?'))
    .send()
}

interface Source {
  cache: ContentCache
  file: ServedFile
  coding: 'negotiated' | 'identity'
  offload: Offload | undefined
  now: number
}

// Returns false, with nothing sent, when the bytes are missing. Never returns the reply: awaiting that would wait until
// the last byte is sent.
async function respond(request: Request, reply: FastifyReply, source: Source): Promise<boolean> {
  const { cache, file, offload, now } = source
  if (file.headers.vary) reply.header('vary', file.headers.vary)
  const ranges = selectRanges(request, file, now)
  const isNegotiated = source.coding === 'negotiated' && ranges === 'whole'
  const coding = isNegotiated ? await negotiate(request, cache, file) : 'identity'
  const validators = validatorsOf(file, coding, now)
  const verdict = evaluateConditions(request.headers, validators)
  if (verdict === 'failed') throw preconditionFailed(file.row.path)
  const headers = { ...commonHeaders(file, validators), ...queryHeaders(request.query, file) }
  if (verdict === 'not modified') {
    reply.code(304).headers(headers).send()
    return true
  }
  if (ranges === 'unsatisfiable') throw rangeNotSatisfiable(file.row.size)
  const content = { cache, file, coding, headers }
  if (request.method === 'HEAD') return sendHead(reply, content)
  const isLarge = offload !== undefined && file.row.size >= offload.minBytes
  if (isLarge && canOffload(request, ranges, { to: offload.to, coding })) {
    const size = await cache.sizeOf(file, coding)
    if (size === undefined) return false
    const isWhole = ranges === 'whole'
    if (hasFile(size)) return sendOffloaded(reply, { ...content, to: offload.to, isWhole })
  }
  return sendContent(reply, content, ranges)
}

async function negotiate({ headers }: Request, cache: ContentCache, file: ServedFile) {
  const preferred = preferCodings(headers['accept-encoding'])
  if (preferred[0] === 'identity') return 'identity'
  return chooseCoding(preferred, (await cache.codings(file)) ?? [])
}

interface Selected {
  cache: ContentCache
  file: ServedFile
  coding: ContentCoding
  headers: Record<string, string>
  /** Instead of 200. */
  status?: number
}

async function sendHead(reply: FastifyReply, selected: Selected) {
  const { cache, file, coding, headers, status = 200 } = selected
  const size = await cache.sizeOf(file, coding)
  if (size === undefined) return false
  reply
    .code(status)
    .headers({ ...headers, ...representationHeaders(file.contentType, coding) })
    .header('content-length', size)
    .send()
  return true
}

function sendOffloaded(
  reply: FastifyReply,
  { file, coding, headers, to, isWhole }: Selected & { to: Offload['to']; isWhole: boolean },
): true {
  const all = { ...headers, ...representationHeaders(file.contentType, coding) }
  const location = { to, digest: file.row.digest, coding, isWhole }
  reply.removeHeader('cache-control').headers(offloadHeaders(all, location)).send()
  return true
}

async function sendContent(
  reply: FastifyReply,
  { cache, file, coding, headers, status = 200 }: Selected,
  ranges: 'whole' | Slice[],
) {
  const { row, contentType } = file
  const content = await cache.content(file, coding)
  if (!content) return false
  const size = Buffer.isBuffer(content) ? content.length : content.size
  const parts =
    ranges === 'whole'
      ? {
          headers: representationHeaders(contentType, coding),
          pieces: [{ start: 0, end: size }],
          length: size,
        }
      : frame(ranges, { contentType, size })
  const body = await bodyOf(content, parts.pieces, row.digest)
  reply
    .code(ranges === 'whole' ? status : 206)
    .headers({ ...headers, ...parts.headers, 'content-length': parts.length })
    .send(body)
  return true
}

// A `v` that is not of these bytes is an old link: it changes nothing.
function queryHeaders({ v, download }: Request['query'], { row }: ServedFile) {
  const isImmutable =
    typeof v === 'string' && /^[0-9a-f]{8,}$/i.test(v) && row.digest.startsWith(v.toLowerCase())
  return {
    ...(isImmutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    ...(download === undefined ? {} : { 'content-disposition': createDisposition(row.name) }),
  }
}
