import { encodedSlash, invalidPath, reservedPath } from '../errors.ts'

/**
 * Stored path, NFC-normalised, from text that has been percent-decoded once and is never decoded again.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export function readPath(text: string): string {
  const path = text.normalize('NFC')
  const fault = findPathFault(path)
  if (!fault) return path
  throw fault.reason === undefined ? reservedPath(fault.segment) : invalidPath(fault.reason, path)
}

/**
 * Stored path as written in a form or a JSON body: one leading slash is dropped.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export const readWrittenPath = (text: string) => readPath(text.replace(/^\//, ''))

/**
 * Directory as written by a client: one leading and one trailing slash are dropped. The root is empty.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export function readDirectory(text: string): string {
  if (text === '' || text === '/') return ''
  return readPath(text.replace(/^\//, '').replace(/\/$/, ''))
}

/**
 * Stored path from the decoded rest of a URL. `%2F` is not a path separator: each file has one URL.
 * @throws {HttpError} `file_not_found`, `invalid_path` or `reserved_path`.
 */
export function readUrlPath(url: string, decoded: string): string {
  if (hasEncodedSlash(url)) throw encodedSlash(decoded)
  return readPath(decoded)
}

/** Whether the path of a URL, before its query, contains `%2F`. */
export const hasEncodedSlash = (url: string) => /^[^?]*%2f/i.test(url)

/** The last segment of a path. */
export const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

/** The directory that holds a path; the root is empty. */
export const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** Path of a name below a directory; the root is empty. */
export const join = (directory: string, name: string) => (directory ? `${directory}/${name}` : name)

/** Path as part of a URL: each segment percent-encoded. Most paths need no encoding, which is a tenth of the time. */
export const encodePath = (path: string) =>
  unreserved.test(path) ? path : encodeURIComponent(path).replaceAll('%2F', '/')

// What encodeURIComponent leaves as it is, and the slash.
const unreserved = /^[\w.!~*'()/-]*$/

/** URL of a served file; absolute with a base. */
export const urlOf = (path: string, base = '') => `${base}/static/${encodePath(path)}`

/** Text as searches compare it: case and Unicode spelling do not matter. Upper case, since sigma has two small forms. */
export const fold = (text: string) => text.toLowerCase().toUpperCase().normalize('NFC')

const maxPathBytes = 1024
const maxSegmentBytes = 255
const maxSegments = 32

// The API's own names under /api/files/.
const reserved = new Set(['categories', 'tree', 'upload'])

/** The first fault of an NFC-normalised path: why it is none, or that its first segment is reserved; or undefined. */
export function findPathFault(path: string) {
  const segments = path.split('/')
  const [segment = ''] = segments
  const reason = findReason(path, segments)
  return reason !== undefined || reserved.has(segment) ? { reason, segment } : undefined
}

function findReason(path: string, segments: string[]): string | undefined {
  if (!path.isWellFormed()) return 'it is not valid Unicode'
  if (Buffer.byteLength(path) > maxPathBytes) return `it has more than ${maxPathBytes} bytes`
  if (forbidden.test(path)) return 'it contains a backslash, a control character or a bidirectional override'
  if (segments.length > maxSegments) return `it has more than ${maxSegments} segments`
  for (const segment of segments) {
    if (segment === '') return 'a segment is empty'
    if (segment === '.' || segment === '..') return 'a segment is . or ..'
    if (Buffer.byteLength(segment) > maxSegmentBytes) return `a segment has more than ${maxSegmentBytes} bytes`
  }
  return undefined
}

// Backslash, C0 and C1 controls, DEL, and bidirectional embeddings, overrides and isolates (UAX 9).
const forbidden = /[\\\p{Cc}\u202a-\u202e\u2066-\u2069]/u
