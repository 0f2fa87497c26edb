import { type PreparedHead, prepareHead } from '@domains-and-files/http'
import type { ContentCoding } from '../blobs/blob-path.ts'
import type { Config } from '../config.ts'
import type { FileRow } from '../files/file-record.ts'
import { isCompressible } from '../files/media-type.ts'
import type { Validators } from '../rfc9110/conditional-requests.ts'
import { contentTag } from '../rfc9110/content-negotiation.ts'
import { cspOf } from './site-policy.ts'

/** A file as it is served: its row, and what every response about it has in common. */
export interface ServedFile {
  row: FileRow
  /** Last modification in whole seconds since 1970, the resolution of HTTP dates. */
  changed: number
  isCompressible: boolean
  /** With the charset, where there should be one. */
  contentType: string
  headers: Headers
  prepared: Map<ContentCoding, PreparedHeaders>
}

type Headers = Record<string, string>

export interface PreparedHeaders {
  size: number
  validators: Validators
  /** Of a 200 with the whole representation. */
  whole: PreparedHead
  /** Of a 304. */
  notModified: PreparedHead
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
  // Never later than now, even if the clock was set back (RFC 9110, 8.8.2.1).
  const changed = Math.floor(Math.min(Date.parse(row.updatedAt), Date.now()) / 1000)
  return {
    row,
    changed,
    isCompressible: isText,
    contentType: withCharset(row.contentType),
    prepared: new Map(),
    headers: {
      'cache-control': rules.cacheControl,
      ...(isText ? { vary: 'Accept-Encoding' } : {}),
      'accept-ranges': 'bytes',
      'last-modified': new Date(changed * 1000).toUTCString(),
      ...(csp && isActive(row.contentType) ? { 'content-security-policy': csp } : {}),
    },
  }
}

/**
 * Whether the date identifies this content. Within the second of the change another content may follow that has the same
 * date (RFC 9110, 8.8.2.2).
 */
export const hasReliableDate = ({ changed }: ServedFile, now: number) =>
  Math.floor(now / 1000) > changed

/** The validators of one representation of a file; no date while that is not reliable. */
export const validatorsOf = (file: ServedFile, coding: ContentCoding, now: number): Validators => ({
  etag: contentTag(file.row.digest, coding),
  changed: hasReliableDate(file, now) ? file.changed : undefined,
})

/** What every response about one representation has, 304 included. */
export function commonHeaders(file: ServedFile, { etag, changed }: Validators): Headers {
  const { 'last-modified': _, ...undated } = file.headers
  return { ...(changed === undefined ? undated : file.headers), etag }
}

/** What a response with a whole representation adds. */
export const representationHeaders = (contentType: string, coding: ContentCoding): Headers => ({
  'content-type': contentType,
  ...(coding === 'identity' ? {} : { 'content-encoding': coding }),
})

/** The headers of a file with a reliable date, made once: they are most of the work of a small response. */
export function prepareHeaders(
  file: ServedFile,
  { coding, size }: { coding: ContentCoding; size: number },
): PreparedHeaders {
  const known = file.prepared.get(coding)
  if (known?.size === size) return known
  const { changed } = file
  const validators = { etag: contentTag(file.row.digest, coding), changed }
  const common = { ...crossOriginHeaders, ...commonHeaders(file, validators) }
  const own = representationHeaders(file.contentType, coding)
  const prepared = {
    size,
    validators,
    whole: prepareHead(200, { ...common, ...own, 'content-length': String(size) }),
    notModified: prepareHead(304, common),
  }
  file.prepared.set(coding, prepared)
  return prepared
}

/** Whether a browser may run scripts in a file of this type: HTML, SVG and all other XML. */
export const isActive = (contentType: string) =>
  /^text\/(?:html|xml|xsl)$|^application\/xml|\+xml$/.test(contentType)

// Browsers take text without a charset for Windows-1252. HTML and XML declare their own encoding.
const withCharset = (contentType: string) =>
  contentType.startsWith('text/') && !isActive(contentType)
    ? `${contentType}; charset=utf-8`
    : contentType
