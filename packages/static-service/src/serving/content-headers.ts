import type { ContentCoding } from '../blobs/blob-path.ts'
import type { Config } from '../config.ts'
import type { FileRow } from '../files/file-record.ts'
import { isCompressible } from '../files/media-type.ts'
import { tagOf } from '../rfc9110/content-negotiation.ts'

/** A file as it is served: its row, and what follows from it once and for all its answers. */
export interface Served {
  row: FileRow
  /** The last change in whole seconds since 1970, as HTTP-dates have it. */
  changed: number
  isCompressible: boolean
  /** As it is sent: with the charset where there should be one. */
  contentType: string
  /** The headers that every answer has that is about this file. */
  headers: Record<string, string>
  /** All headers of a form, of its whole and of the answer that it is unchanged, once they have been made. */
  made: Map<ContentCoding, { whole: Headers & { 'content-length': number }; unchanged: Headers }>
}

type Headers = Record<string, string | number> & { etag: string }

/** What every answer about a file has: anybody may embed it, and see these headers of it. */
export const openToAll = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'accept-ranges, content-disposition, content-encoding, content-length, content-range, etag, x-request-id',
  'cross-origin-resource-policy': 'cross-origin',
}

/** A file as it is served by these rules. */
export function describeFile(row: FileRow, rules: Config['static']): Served {
  const isText = isCompressible(row.contentType)
  // Not later than now, whatever the clock did since (RFC 9110, 8.8.2.1).
  const changed = Math.floor(Math.min(Date.parse(row.updatedAt), Date.now()) / 1000)
  return {
    row,
    changed,
    isCompressible: isText,
    contentType: labelOf(row.contentType),
    made: new Map(),
    headers: {
      'cache-control': rules.cacheControl,
      ...(isText ? { vary: 'Accept-Encoding' } : {}),
      'accept-ranges': 'bytes',
      'last-modified': new Date(changed * 1000).toUTCString(),
      ...(rules.csp && isActive(row.contentType) ? { 'content-security-policy': rules.csp } : {}),
    },
  }
}

/**
 * The headers of an answer with the whole of a form, and of one that it is unchanged. Made once: they are most of what a
 * small answer costs.
 */
export function headersOf(served: Served, form: ContentCoding, size: number) {
  const made = served.made.get(form)
  if (made?.whole['content-length'] === size) return made
  const etag = tagOf(served.row.digest, form)
  const unchanged = { ...openToAll, ...served.headers, etag }
  const { headers } = wholeOf(served.contentType, form, size)
  const whole = { ...unchanged, ...headers, 'content-length': size }
  served.made.set(form, { whole, unchanged })
  return { whole, unchanged }
}

/** What is said of a form that is sent whole, beside what `Served` says of the file. */
export const wholeOf = (contentType: string, form: ContentCoding, size: number) => ({
  headers: {
    'content-type': contentType,
    ...(form === 'identity' ? {} : { 'content-encoding': form }),
  },
  pieces: [{ start: 0, end: size }],
  length: size,
})

/** Whether a browser may run what is in a file of this type: HTML, SVG and all other XML. */
export const isActive = (contentType: string) =>
  /^text\/(?:html|xml|xsl)$|^application\/xml|\+xml$/.test(contentType)

// Without a label browsers take text for Windows-1252. HTML and XML say themselves what they are written in.
const labelOf = (contentType: string) =>
  contentType.startsWith('text/') && !isActive(contentType)
    ? `${contentType}; charset=utf-8`
    : contentType
