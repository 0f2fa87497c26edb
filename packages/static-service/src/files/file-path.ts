import { invalidPath, reservedPath } from '../errors.ts'

const longestPath = 1024
const longestSegment = 255
const mostSegments = 32

// The API's own names under /api/files/.
const reserved = new Set(['categories', 'tree', 'upload'])

/**
 * A valid stored path, NFC-normalised, from text that has been percent-decoded once and is never decoded again.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export function readPath(text: string): string {
  if (!text.isWellFormed()) throw invalidPath('it is not valid Unicode')
  const path = text.normalize('NFC')
  if (path === '') throw invalidPath('it is empty')
  if (Buffer.byteLength(path) > longestPath) {
    throw invalidPath(`it has more than ${longestPath} bytes`)
  }
  if (forbidden.test(path)) {
    throw invalidPath('it holds a backslash, a control character or one that overrides direction')
  }
  const segments = path.split('/')
  if (segments.length > mostSegments) {
    throw invalidPath(`it has more than ${mostSegments} segments`)
  }
  for (const segment of segments) checkSegment(segment)
  const [first = ''] = segments
  if (reserved.has(first)) throw reservedPath(first)
  return path
}

/**
 * A path as people write it in a form or in `prefix`: one leading slash is dropped.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export const readWrittenPath = (text: string) => readPath(text.replace(/^\//, ''))

/**
 * A directory as people write it: one leading and one trailing slash are dropped, and nothing is the root.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export function readDirectory(text: string): string {
  if (text === '' || text === '/') return ''
  return readPath(text.replace(/^\//, '').replace(/\/$/, ''))
}

/**
 * Sees that a URL can be percent-decoded whole: the framework leaves a query parameter that cannot be as it is.
 * @throws {HttpError} `invalid_path`.
 */
export function checkEncoding(url: string): void {
  try {
    decodeURIComponent(url)
  } catch {
    throw invalidPath('it is not valid percent-encoded UTF-8')
  }
}

/** The path of a name below a directory; the root is empty. */
export const join = (directory: string, name: string) => (directory ? `${directory}/${name}` : name)

/** A path as part of a URL, each segment percent-encoded. */
export const encodePath = (path: string) => path.split('/').map(encodeURIComponent).join('/')

/** Where a path is served; absolute with a base. */
export const urlOf = (path: string, base = '') => `${base}/static/${encodePath(path)}`

function checkSegment(segment: string) {
  if (segment === '') throw invalidPath('a segment is empty')
  if (segment === '.' || segment === '..') throw invalidPath('a segment is . or ..')
  if (Buffer.byteLength(segment) > longestSegment) {
    throw invalidPath(`a segment has more than ${longestSegment} bytes`)
  }
}

// Backslashes, C0 and C1 controls with DEL, and the embeddings, overrides and isolates of direction (UAX 9).
const forbidden = /[\\\p{Cc}\u202a-\u202e\u2066-\u2069]/u
