import type { IncomingMessage } from 'node:http'
import {
  HttpError,
  methodNotAllowed,
  type PreparedHead,
  prepareHead,
  type RawResponse,
  type RawRoute,
} from '@domains-and-files/http'
import { create as createDisposition } from 'content-disposition'
import type { Config } from '../config.ts'
import { fileNotFound, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { join } from '../files/file-path.ts'
import { frame, type Selection, selectRanges } from '../rfc9110/byte-ranges.ts'
import { evaluateConditions } from '../rfc9110/conditional-requests.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'
import { chooseCoding, preferCodings } from '../rfc9110/content-negotiation.ts'
import type { ContentCache } from './content-cache.ts'
import { BlobStream, type Content, joinPieces } from './content-stream.ts'
import { canOffload, hasFile, offloadHeaders } from './proxy-offload.ts'
import {
  crossOriginHeaders,
  type Headers,
  hasReliableDate,
  type Representation,
  representationOf,
  type ServedFile,
  wholeHead,
} from './served-file.ts'
import {
  cleanUrlTarget,
  indexOf,
  notFoundPage,
  readPlainPath,
  readTarget,
  type StaticPolicies,
  siteOf,
  type Target,
} from './static-target.ts'

interface Dependencies {
  cache: ContentCache
  rules: StaticPolicies & Pick<Config['static'], 'offload'>
  /** Whether a trusted proxy forwarded a request. */
  isForwarded: (request: IncomingMessage) => boolean
  /** Milliseconds since 1970; passed in by tests. */
  now?: () => number
}

/** A request that is being answered. */
interface Asked {
  request: IncomingMessage
  target: Target
  /** The file answers for another path, where later another file may be: its date says nothing about that path. */
  isFallback: boolean
  attempt: number
}

/** What is going to be sent. */
interface Selected extends Asked {
  file: ServedFile
  selection: Selection
  representation: Representation
  status: 200 | 404
}

type Reply = RawResponse | Promise<RawResponse>
type Found = ServedFile | undefined

/**
 * /static/{path}: conditions, ranges and content codings by RFC 9110. Not @fastify/static: its tags are weak, it answers
 * several ranges whole and takes malformed ones (8.8 and 14). Every response is complete, of the file as it was at one
 * moment after the request arrived, with the validators of those bytes. What is in memory is sent without waiting.
 */
export class StaticHandler implements RawRoute {
  readonly prefix = '/static/'
  readonly url = '/static/*'
  readonly failureHeaders = { ...crossOriginHeaders, 'cache-control': 'no-store' }
  readonly #cache: ContentCache
  readonly #rules: Dependencies['rules']
  readonly #isForwarded: Dependencies['isForwarded']
  readonly #now: () => number

  constructor({ cache, rules, isForwarded, now = Date.now }: Dependencies) {
    this.#cache = cache
    this.#rules = rules
    this.#isForwarded = isForwarded
    this.#now = now
  }

  /**
   * @throws {HttpError} `invalid_path`, `file_not_found`, `precondition_failed`, `range_not_satisfiable` or
   *   `method_not_allowed`.
   */
  respond(request: IncomingMessage): Reply {
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD') return respondToOther(request)
    const path = readPlainPath(url)
    const target = path ? { path, ...plainTarget } : readTarget(url, this.#rules)
    const asked = { request, target, isFallback: false, attempt: 0 }
    return this.#serve(asked, this.#find(request, target.path))
  }

  // The only way to a file, and to its bytes, in memory or not. Whoever may not read a file must not find it here.
  #find(_request: IncomingMessage, path: string): Found | Promise<Found> {
    return this.#cache.find(path)
  }

  #serve(asked: Asked, file: Found | Promise<Found>): Reply {
    if (file instanceof Promise) return file.then((found) => this.#serve(asked, found))
    if (!file) return this.#serveMissing(asked)
    const { request, attempt } = asked
    const selection = this.#selectRanges(asked, file)
    const preferred = preferCodings(request.headers['accept-encoding'])
    // Ranges are ranges of the identity form. At the second attempt a compressed form was missing.
    const isIdentity = preferred[0] === 'identity' || selection !== 'whole' || attempt > 0
    if (isIdentity) return this.#answer(asked, { file, selection, coding: 'identity' })
    const stored = this.#cache.codings(file)
    if (!(stored instanceof Promise)) {
      const coding = chooseCoding(preferred, stored ?? [])
      return this.#answer(asked, { file, selection, coding })
    }
    return stored.then((found) =>
      this.#answer(asked, { file, selection, coding: chooseCoding(preferred, found ?? []) }),
    )
  }

  #selectRanges(asked: Asked, file: ServedFile): Selection {
    if (asked.request.headers.range === undefined) return 'whole'
    const { validators } = representationOf(file, 'identity', this.#isDated(asked, file))
    return selectRanges(asked.request, validators, file.row.size)
  }

  #isDated({ isFallback }: Asked, file: ServedFile): boolean {
    return !isFallback && hasReliableDate(file, this.#now())
  }

  #answer(
    asked: Asked,
    { file, selection, coding }: { file: ServedFile; selection: Selection; coding: ContentCoding },
  ): Reply {
    const { request } = asked
    const representation = representationOf(file, coding, this.#isDated(asked, file))
    const verdict = evaluateConditions(request.headers, representation.validators)
    if (verdict === 'failed') throw withVary(preconditionFailed(file.row.path), file)
    const selected: Selected = { ...asked, file, selection, representation, status: 200 }
    if (verdict === 'not modified') return { head: notModifiedHead(selected) }
    if (selection === 'unsatisfiable') throw withVary(rangeNotSatisfiable(file.row.size), file)
    if (request.method === 'HEAD') return this.#respondHead(selected)
    if (this.#canOffload(selected)) return this.#offload(selected)
    return this.#sendContent(selected)
  }

  #sendContent(selected: Selected): Reply {
    const content = this.#cache.content(selected.file, selected.representation.coding)
    if (!(content instanceof Promise)) return this.#send(selected, content)
    return content.then((found) => this.#send(selected, found))
  }

  #send(selected: Selected, content: Content | undefined): Reply {
    if (!content) return this.#retry(selected)
    const { file, selection, representation } = selected
    const isWhole = selection === 'whole' || selection === 'unsatisfiable'
    if (Buffer.isBuffer(content) && isWhole) {
      const head = headOf(selected, content.length)
      return { head, body: textOf(representation, content) ?? content }
    }
    const size = Buffer.isBuffer(content) ? content.length : content.size
    const slices = isWhole ? undefined : selection
    const part = slices && frame(slices, { contentType: file.contentType, size })
    const head = part ? partHead(selected, part) : headOf(selected, size)
    const pieces = part?.pieces ?? [{ start: 0, end: size }]
    if (Buffer.isBuffer(content)) return { head, body: joinPieces(content, pieces) }
    return BlobStream.open(content, pieces, file.row.digest).then((body) => ({ head, body }))
  }

  // The file was replaced or deleted after its row was read, or a compressed form was.
  #retry({ request, target, file, attempt, status }: Selected): Reply {
    this.#cache.invalidate(file)
    if (status === 404) throw fileNotFound(target.path)
    if (attempt + 1 === maxAttempts) throw new Error(`the blob of ${target.path} is missing`)
    const asked = { request, target, isFallback: false, attempt: attempt + 1 }
    return this.#serve(asked, this.#find(request, target.path))
  }

  async #respondHead(selected: Selected): Promise<RawResponse> {
    const size = await this.#cache.sizeOf(selected.file, selected.representation.coding)
    return size === undefined ? this.#retry(selected) : { head: headOf(selected, size) }
  }

  #canOffload({ request, file, selection, representation: { coding } }: Selected): boolean {
    const { offload } = this.#rules
    if (!offload || file.row.size < offload.minBytes) return false
    return canOffload(request, selection, { to: offload.to, coding }) && this.#isForwarded(request)
  }

  async #offload(selected: Selected): Promise<RawResponse> {
    const { file, selection, representation } = selected
    const { coding, common, own } = representation
    const size = await this.#cache.sizeOf(file, coding)
    if (size === undefined) return this.#retry(selected)
    const to = this.#rules.offload?.to
    if (!to || !hasFile(size)) return this.#sendContent(selected)
    const location = { to, digest: file.row.digest, coding, isWhole: selection === 'whole' }
    const headers = { ...common, ...queryHeaders(selected), ...own, 'content-length': '0' }
    return { head: prepareHead(200, offloadHeaders(headers, location)) }
  }

  // A clean URL, the redirect to a directory's index, or the site's own page for missing paths.
  async #serveMissing(asked: Asked): Promise<RawResponse> {
    const { request } = asked
    // Also finds what is wrong with the path of a frequent URL.
    const { path, isDirectory } = readTarget(request.url ?? '', this.#rules)
    if (!isDirectory) {
      const cleanUrl = cleanUrlTarget(path, this.#rules)
      const file = cleanUrl === undefined ? undefined : await this.#find(request, cleanUrl)
      if (file) return this.#serve({ ...asked, isFallback: true }, file)
      const index = indexOf(path, this.#rules)
      if (index && (await this.#find(request, join(path, index)))) return this.#redirect(request)
    }
    const page = notFoundPage(path, this.#rules)
    const file = page === undefined ? undefined : await this.#find(request, page)
    if (!file) throw fileNotFound(path)
    return this.#respondPage(asked, file)
  }

  // Relative links in an index resolve against its directory, so the URL must end in a slash.
  #redirect({ url = '' }: IncomingMessage): RawResponse {
    const [pathname = '', ...query] = url.split('?')
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    const location = [`./${name}/`, ...query].join('?')
    return {
      head: prepareHead(302, { ...this.failureHeaders, location, 'content-length': '0' }),
    }
  }

  #respondPage(asked: Asked, file: ServedFile): Reply {
    const { csp } = siteOf(asked.target.path, this.#rules) ?? {}
    const common: Headers = { ...this.failureHeaders }
    if (csp) common['content-security-policy'] = csp
    const representation = { ...representationOf(file, 'identity', false), common }
    const selected = { ...asked, file, selection: 'whole', representation, status: 404 } as const
    return asked.request.method === 'HEAD'
      ? this.#respondHead(selected)
      : this.#sendContent(selected)
  }
}

const plainTarget = { isDirectory: false, query: undefined }

// A file can be replaced again and again between row and bytes, but not this often: then its bytes are lost.
const maxAttempts = 8

// Within what the cache of files estimates for an entry.
const maxTextBytes = 2048

// A string is sent together with the headers, in one write.
function textOf(representation: Representation, bytes: Buffer): string | undefined {
  if (bytes.length > maxTextBytes) return undefined
  representation.text ??= bytes.toString('latin1')
  return representation.text
}

function headOf(selected: Selected, size: number): PreparedHead {
  const { target, representation, status } = selected
  if (target.query === undefined && status === 200) return wholeHead(representation, size)
  const { common, own } = representation
  const extra = status === 200 ? queryHeaders(selected) : {}
  return prepareHead(status, { ...common, ...extra, ...own, 'content-length': String(size) })
}

const partHead = (selected: Selected, part: ReturnType<typeof frame>): PreparedHead =>
  prepareHead(206, {
    ...selected.representation.common,
    ...queryHeaders(selected),
    ...part.headers,
    'content-length': String(part.length),
  })

function notModifiedHead(selected: Selected): PreparedHead {
  const { target, representation } = selected
  if (target.query === undefined) return representation.notModified
  return prepareHead(304, { ...representation.common, ...queryHeaders(selected) })
}

// A `v` that is not of these bytes is an old link: it changes nothing.
function queryHeaders({ target: { query }, file: { row } }: Selected): Headers {
  const [v = '', ...more] = query?.getAll('v') ?? []
  const isImmutable =
    more.length === 0 && /^[0-9a-f]{8,}$/i.test(v) && row.digest.startsWith(v.toLowerCase())
  return {
    ...(isImmutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    ...(query?.has('download') ? { 'content-disposition': createDisposition(row.name) } : {}),
  }
}

function withVary({ status, code, message, headers }: HttpError, file: ServedFile) {
  const { vary } = file.headers
  return new HttpError(status, code, message, { headers: { ...headers, ...(vary && { vary }) } })
}

// CORS preflights of any origin, whatever CORS_ORIGIN names for the API.
function respondToOther({ method = '', headers }: IncomingMessage): RawResponse {
  const isPreflight =
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  if (isPreflight) return { head: preflightHead }
  throw methodNotAllowed(method, 'GET, HEAD')
}

const preflightHead = prepareHead(204, {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  // The wildcard does not cover Authorization, which some clients send everywhere.
  'access-control-allow-headers': '*, authorization',
  'access-control-max-age': '86400',
})
