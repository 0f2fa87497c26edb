import type { IncomingMessage } from 'node:http'
import { HttpError, methodNotAllowed, type PreparedHead, prepareHead, type RawResponse } from '@domains-and-files/http'
import { create as createDisposition } from 'content-disposition'
import { minBytes } from '../blobs/compressor.ts'
import { blobPathOf } from '../blobs/stored-blob.ts'
import type { FileRow } from '../catalog/tables.ts'
import type { Config } from '../config.ts'
import { nameOf } from '../files/file-path.ts'
import { isCompressible } from '../files/media-type.ts'
import type { Selection } from '../rfc9110/byte-ranges.ts'
import type { Validators } from '../rfc9110/conditional-requests.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'
import { contentTag } from '../rfc9110/content-negotiation.ts'
import { cspOf, type Target } from './static-target.ts'

/** A file as it is served: its row, and the parts that all its responses share. */
export interface ServedFile {
  row: FileRow
  /** Last modification in whole seconds since 1970, the resolution of HTTP dates. */
  changed: number
  /** Whether it may have compressed forms. */
  isCompressible: boolean
  /** With a charset where the type needs one. */
  contentType: string
  /** Whether everybody may read it: only then may proxies send it and shared caches store it. */
  isPublic: boolean
  headers: Headers
  /** Cached per coding: headers are most of the work of a small response. */
  representations: Map<string, Representation>
  /** Kept until the file or an access rule changes. */
  record?: SentRecord
}

/** File record as the API sends it: its entity tag and its JSON. */
export interface SentRecord {
  etag: string
  json: string
}

export type Headers = Record<string, string>

/** A file that is served to those who have a link to it. Both throw the same error where it is not, or no longer. */
export interface LinkedFile {
  find(): Promise<ServedFile>
  /** Counts a download where one begins. */
  admit(isFromStart: boolean): Promise<void>
}

/** One representation of a file, with or without Last-Modified. */
export interface Representation {
  coding: ContentCoding
  validators: Validators
  /** Sent with every response about it, including 304. */
  common: Headers
  /** Sent with its complete body only. */
  own: Headers
  notModified: PreparedHead
  /** The head of a 200 with a body of this size. */
  whole?: { size: number; head: PreparedHead }
  /** The body, if it is small, with one byte per character. */
  text?: string
}

/** In every response below /static: pages of any origin may embed the file and read these headers. */
export const crossOriginHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'accept-ranges, content-disposition, content-encoding, content-length, content-range, etag, x-request-id',
  'cross-origin-resource-policy': 'cross-origin',
}

export function describeFile(row: FileRow, rules: Config['static']): ServedFile {
  const isText = isCompressible(row.contentType)
  const csp = cspOf(row.path, rules)
  return {
    row,
    changed: Math.floor(Date.parse(row.updatedAt) / 1000),
    isCompressible: isText && row.size >= minBytes,
    contentType: withCharset(row.contentType),
    representations: new Map(),
    isPublic: true,
    headers: {
      ...crossOriginHeaders,
      'cache-control': rules.cacheControl,
      ...(isText ? { vary: 'Accept-Encoding' } : {}),
      'accept-ranges': 'bytes',
      ...(csp && isActive(row.contentType) ? { 'content-security-policy': csp } : {}),
    },
  }
}

/** The file as served to a reader with credentials or a link, with these headers. */
export function asPrivate(file: ServedFile, headers: Headers): ServedFile {
  const vary = [headers.vary, file.headers.vary].filter(Boolean).join(', ')
  const own = { ...file.headers, ...headers, ...(vary && { vary }) }
  return { ...file, isPublic: false, headers: own, representations: new Map() }
}

/**
 * Whether Last-Modified identifies these bytes. Within the second of a change, other bytes may follow with the same
 * date (RFC 9110, 8.8.2.2); a date in the future must not be sent (8.8.2.1).
 */
export const hasReliableDate = ({ changed }: ServedFile, now: number) => Math.floor(now / 1000) > changed

export function representationOf(file: ServedFile, coding: ContentCoding, isDated: boolean): Representation {
  const key = isDated ? coding : `${coding}, undated`
  const known = file.representations.get(key)
  if (known) return known
  const etag = contentTag(file.row.digest, coding)
  const lastModified = { 'last-modified': new Date(file.changed * 1000).toUTCString() }
  const common = { ...file.headers, ...(isDated ? lastModified : {}), etag }
  const representation: Representation = {
    coding,
    validators: { etag, changed: isDated ? file.changed : undefined },
    common,
    own: { 'content-type': file.contentType, ...(coding === 'identity' ? {} : { 'content-encoding': coding }) },
    notModified: prepareHead(304, common),
  }
  file.representations.set(key, representation)
  return representation
}

export interface Selected {
  request: IncomingMessage
  target: Target
  file: ServedFile
  selection: Selection
  representation: Representation
  status: 200 | 404
}

/** An error about the file, with its Vary and Cross-Origin-Resource-Policy. */
export function withVary({ status, code, message, headers }: HttpError, file: ServedFile) {
  const { vary, 'cross-origin-resource-policy': policy = '' } = file.headers
  const own = { 'cross-origin-resource-policy': policy, ...(vary && { vary }) }
  return new HttpError(status, code, message, { headers: { ...headers, ...own } })
}

/** The head of a complete response, of this size. A 200 without a query is cached. */
export function headOf(selected: Selected, size: number): PreparedHead {
  const { representation, target, status } = selected
  const headers = { ...headersOf(selected), ...representation.own, 'content-length': String(size) }
  const head = prepareHead(status, headers)
  if (!target.query && status === 200) representation.whole = { size, head }
  return head
}

export const partHead = (selected: Selected, part: { headers: Headers; length: number }) =>
  prepareHead(206, { ...headersOf(selected), ...part.headers, 'content-length': String(part.length) })

export const notModifiedHead = (selected: Selected): PreparedHead =>
  selected.target.query ? prepareHead(304, headersOf(selected)) : selected.representation.notModified

/** Headers of every response about a representation. A `v` that does not match the digest is an old link and is ignored. */
function headersOf({ file, representation, target, status }: Selected): Headers {
  const { row, isPublic } = file
  const { query } = target
  if (!query || status === 404) return representation.common
  const [v = '', ...more] = query.getAll('v')
  const isImmutable =
    isPublic && more.length === 0 && /^[0-9a-f]{8,}$/i.test(v) && row.digest.startsWith(v.toLowerCase())
  return {
    ...representation.common,
    ...(isImmutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    ...(query.has('download') ? { 'content-disposition': createDisposition(nameOf(row.path)) } : {}),
  }
}

// Whether a browser may run scripts in a file of this type: HTML, SVG and all other XML.
const isActive = (contentType: string) => /^text\/(?:html|xml|xsl)$|^application\/xml|\+xml$/.test(contentType)

// Browsers take text without a charset for Windows-1252. HTML and XML declare their own encoding.
const withCharset = (contentType: string) =>
  contentType.startsWith('text/') && !isActive(contentType) ? `${contentType}; charset=utf-8` : contentType

/**
 * The response to a request that is neither GET nor HEAD: to CORS preflights of any origin, whatever CORS_ORIGIN names
 * for the API. @throws {HttpError} `method_not_allowed`.
 */
export function respondToOther({ method = '', headers }: IncomingMessage): RawResponse {
  const isPreflight =
    method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
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

/** The proxy that may send stored files itself, and the minimum size of these files. */
export type Offload = NonNullable<Config['static']['offload']>

/**
 * Whether the proxy offers to send the body of a response to GET. The proxy says so per request (X-Static-Offload): another of
 * its routes may lack the handler. The caller must check that the proxy is trusted. This service answers requests with
 * conditions itself, and those with ranges that servers parse differently.
 */
export function canOffload({ request, file, selection, representation }: Selected, offload: Offload): boolean {
  const { headers } = request
  if (!file.isPublic || file.row.size < offload.minBytes || headers['x-static-offload'] !== offload.to) return false
  if (conditions.some((name) => headers[name] !== undefined)) return false
  // Caddy sends encoded bodies without a length.
  if (offload.to === 'caddy' && representation.coding !== 'identity') return false
  if (headers.range === undefined) return true
  return selection !== 'whole' && /^bytes=(?:\d{1,15}-\d{0,15}|-\d{1,15})$/.test(headers.range)
}

/** Makes the proxy send the body: adds the blob's path below DATA_DIR, named by its digest. */
export function offloadHead(selected: Selected, to: Offload['to']): PreparedHead {
  const { file, selection, representation } = selected
  const headers = { ...headersOf(selected), ...representation.own, 'content-length': '0' }
  const path = blobPathOf(file.row.digest, representation.coding).join('/')
  const location = { 'x-accel-redirect': `/blobs/${path}` }
  if (to === 'caddy') return prepareHead(200, { ...headers, ...location })
  // nginx keeps these fields and would send them twice: beside those of a second request to this service, and beside
  // its own Accept-Ranges for a whole file. Renamed fields are not kept.
  const renamed = Object.entries(headers).flatMap(([name, value]) => {
    if (name === 'accept-ranges' && selection === 'whole') return []
    return [[keptByNginx.has(name) ? `x-static-${name}` : name, value]]
  })
  return prepareHead(200, { ...Object.fromEntries(renamed), ...location })
}

const keptByNginx = new Set(['accept-ranges', 'cache-control', 'content-disposition'])

const conditions = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range']
