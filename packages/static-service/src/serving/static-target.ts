import { HttpError, isDecodable } from '@domains-and-files/http'
import type { Config } from '../config.ts'
import { encodedSlash, fileNotFound, undecodableUrl } from '../errors.ts'
import { hasEncodedSlash, join, parentOf, readPath } from '../files/file-path.ts'

type Policies = Config['static']

/** The innermost site that a path, of a file or of a directory, belongs to. */
export function siteOf(path: string, { sites }: Pick<Policies, 'sites'>): Policies['sites'][number] | undefined {
  for (const site of sites) {
    const { directory, isParent } = site
    const start = directory === '' ? '' : `${directory}/`
    if (!isParent && (path === directory || path.startsWith(start))) return site
    const [name = ''] = path.startsWith(start) ? path.slice(start.length).split('/', 1) : []
    if (isParent && name !== '') return { ...site, directory: start + name }
  }
  return undefined
}

/** The innermost site that contains a file. A file at the path of a site is not in that site. */
export const siteOfFile = (path: string, policies: Policies) => siteOf(parentOf(path), policies)

export const cspOf = (path: string, policies: Policies) => (siteOfFile(path, policies) ?? policies).csp

/** The name of the file that answers for this directory. */
export const indexOf = (directory: string, policies: Policies) => (siteOf(directory, policies) ?? policies).index

/** The file that answers where there is none at the path: `guide.html` for `guide` in a site. */
export const cleanUrlTarget = (path: string, policies: Policies) => siteOfFile(path, policies) && `${path}.html`

export const notFoundPage = (path: string, policies: Policies) => {
  const site = siteOf(path, policies)
  return site && join(site.directory, '404.html')
}

/** A parsed URL below /static. */
export interface Target {
  path: string
  /** The URL is that of a directory, and the path that of its index. */
  isDirectory: boolean
  query: URLSearchParams | undefined
}

/** What follows the first segment of a request target, in origin or absolute form (RFC 9112, 3.2), and its query. */
export function splitTarget(url: string) {
  const [, rest = '', search] = /^(?:https?:\/\/[^/?#]*)?\/[^/?#]*\/([^?]*)(?:\?(.*))?$/is.exec(url) ?? []
  return { rest, query: search === undefined ? undefined : new URLSearchParams(search) }
}

/**
 * Reads a request target. Its first segment is `/static/`.
 * @throws {HttpError} `invalid_path`, or `file_not_found` for a valid path that cannot be stored.
 */
export function readTarget(url: string, policies: Policies): Target {
  const { rest, query } = splitTarget(url)
  if (!isDecodable(rest)) throw undecodableUrl()
  const text = decodeURIComponent(rest)
  // One file has one URL: an encoded slash is no separator.
  if (hasEncodedSlash(rest)) throw encodedSlash(text)
  if (text.startsWith('/')) throw fileNotFound(text)
  const isDirectory = text === '' || text.endsWith('/')
  if (!isDirectory) return { path: readStoredPath(text), isDirectory, query }
  const directory = text && readStoredPath(text.slice(0, -1))
  const index = indexOf(directory, policies)
  if (!index) throw fileNotFound(text || '/')
  return { path: join(directory, index), isDirectory, query }
}

/**
 * Fast path for most URLs: the path needs no decoding, and no segment is empty or begins with a dot. Up to
 * `maxPlainLength` only its number of segments can be invalid.
 */
export const plainPath = /^\/static\/((?:[\w~-][\w.~-]*\/)*[\w~-][\w.~-]*)$/

export const maxPlainLength = 255

// Reserved names cannot be stored, so they are absent here.
function readStoredPath(text: string): string {
  try {
    return readPath(text)
  } catch (error) {
    if (error instanceof HttpError && error.code === 'reserved_path') throw fileNotFound(text)
    throw error
  }
}
