import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type EarlyResponder, type EarlyResponse, prepareHead } from '@domains-and-files/http'
import type { ContentCoding } from '../blobs/blob-path.ts'
import { frame } from '../rfc9110/byte-ranges.ts'
import { evaluateConditions } from '../rfc9110/conditional-requests.ts'
import { preferCodings } from '../rfc9110/content-negotiation.ts'
import type { CachedContent, ContentCache } from './content-cache.ts'
import type { Offload } from './proxy-offload.ts'
import { selectRanges } from './select-ranges.ts'
import {
  commonHeaders,
  crossOriginHeaders,
  hasReliableDate,
  prepareHeaders,
  validatorsOf,
} from './served-file.ts'

/**
 * Answers requests for contents in memory, and for small ones, before the framework: 200, 206 with one range, and 304.
 * Queries, percent-encoded paths, failures, several ranges, offloaded files and files that changed this very second are
 * left to the route.
 */
export class CachedResponses implements EarlyResponder {
  readonly prefix = '/static/'
  readonly route = '/static/*'
  readonly #cache: ContentCache
  readonly #minOffloadBytes: number
  readonly #now: () => number

  /** `now` gives milliseconds since 1970; tests pass their own. */
  constructor(cache: ContentCache, offload: Offload | undefined, now = Date.now) {
    this.#cache = cache
    this.#minOffloadBytes = offload?.minBytes ?? Number.POSITIVE_INFINITY
    this.#now = now
  }

  respond(
    request: IncomingMessage,
  ): EarlyResponse | undefined | Promise<EarlyResponse | undefined> {
    const { method, url = '', headers } = request
    const path = plainPath.exec(url)?.[1]
    if (path === undefined) return undefined
    const isPartial = method === 'GET' && headers.range !== undefined
    const codings = preferCodings(isPartial ? undefined : headers['accept-encoding'])
    const now = this.#now()
    const cached = this.#peek(path, codings, now)
    if (!cached || cached.file.row.size >= this.#minOffloadBytes) return undefined
    if (!hasReliableDate(cached.file, now)) return undefined
    const response = isPartial
      ? respondPart(headers, cached, now)
      : respondWhole(headers, cached, method === 'HEAD')
    if (!response) return undefined
    const isCurrent = this.#cache.confirm(cached.file, request)
    if (isCurrent !== true) return this.#respondIf(isCurrent, response)
    this.#cache.countHits(cached)
    return response
  }

  // A failing disk is left to the route, which reports it.
  #peek(path: string, codings: readonly ContentCoding[], now: number): CachedContent | undefined {
    try {
      return this.#cache.peek(path, codings, now)
    } catch {
      return undefined
    }
  }

  // After a failure the route answers, too: it finds the same look-up.
  async #respondIf(isCurrent: Promise<boolean>, response: EarlyResponse) {
    return (await isCurrent.catch(() => false)) ? response : undefined
  }
}

// Within what the cache of files estimates for an entry.
const maxTextBytes = 2048

// In these characters a path is its own percent-encoding.
const plainPath = /^\/static\/([\w.~/-]+)$/

function respondWhole(
  headers: IncomingHttpHeaders,
  { file, coding, bytes }: CachedContent,
  isHead: boolean,
): EarlyResponse | undefined {
  const prepared = prepareHeaders(file, { coding, size: bytes.length })
  const verdict = evaluateConditions(headers, prepared.validators)
  if (verdict === 'failed') return undefined
  const { whole, notModified } = prepared
  if (verdict === 'not modified') return { head: notModified, body: undefined }
  if (isHead) return { head: whole, body: undefined }
  if (bytes.length <= maxTextBytes) prepared.text ??= bytes.toString('latin1')
  return { head: whole, body: prepared.text ?? bytes }
}

function respondPart(
  headers: IncomingHttpHeaders,
  { file, bytes }: CachedContent,
  now: number,
): EarlyResponse | undefined {
  const ranges = selectRanges({ method: 'GET', headers }, file, now)
  if (typeof ranges === 'string' || ranges.length > 1) return undefined
  const validators = validatorsOf(file, 'identity', now)
  if (evaluateConditions(headers, validators) !== 'proceed') return undefined
  const part = frame(ranges, { contentType: file.contentType, size: bytes.length })
  const [slice] = ranges
  return {
    head: prepareHead(206, {
      ...crossOriginHeaders,
      ...commonHeaders(file, validators),
      ...part.headers,
      'content-length': String(part.length),
    }),
    body: bytes.subarray(slice?.start, slice?.end),
  }
}
