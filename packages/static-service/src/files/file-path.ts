import { encodedSlash, invalidPath, reservedPath } from '../errors.ts'
import { findPathFault } from './path-rules.ts'

/**
 * Stored path, NFC-normalised, from text that has been percent-decoded once and is never decoded again.
 * @throws {HttpError} `invalid_path` or `reserved_path`.
 */
export function readPath(text: string): string {
  const path = text.normalize('NFC')
  const fault = findPathFault(path)
  if (!fault) return path
  throw fault.code === 'invalid_path'
    ? invalidPath(fault.reason, path)
    : reservedPath(fault.segment)
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
export function hasEncodedSlash(url: string): boolean {
  const at = url.search(/%2f/i)
  return at !== -1 && !url.slice(0, at).includes('?')
}

/**
 * Checks that a URL can be percent-decoded: the framework leaves a malformed query parameter undecoded.
 * @throws {HttpError} `invalid_path`.
 */
export function checkEncoding(url: string): void {
  if (!isDecodable(url)) throw invalidPath('it is not valid percent-encoded UTF-8')
}

function isDecodable(url: string): boolean {
  try {
    // Compared, since the bundler removes a call of this function whose value is not used, and what it throws with it.
    return decodeURIComponent(url) !== ''
  } catch {
    return false
  }
}

/** Path of a name below a directory; the root is empty. */
export const join = (directory: string, name: string) => (directory ? `${directory}/${name}` : name)

/** Path as part of a URL: each segment percent-encoded. */
export const encodePath = (path: string) => path.split('/').map(encodeURIComponent).join('/')

/** URL of a served file; absolute with a base. */
export const urlOf = (path: string, base = '') => `${base}/static/${encodePath(path)}`
