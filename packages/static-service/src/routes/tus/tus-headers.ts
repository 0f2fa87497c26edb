import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import * as errors from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import { conditionsOf } from '../files/store-files.ts'

/** A header of tus 1.0.0 with a number of bytes. @throws {HttpError} `malformed_request`. */
export function readBytes(headers: IncomingHttpHeaders, name: string): number | undefined {
  const value = headers[name]
  if (value === undefined) return undefined
  if (!/^\d+$/.test(String(value))) throw errors.malformedTus(`${name} must be a number`)
  return Number(value)
}

/** The hash that the bytes of a request must have, if any. @throws {HttpError} `malformed_request`. */
export function readChecksum({ 'upload-checksum': value }: IncomingHttpHeaders) {
  if (value === undefined) return undefined
  const [, algorithm, digest] = /^(sha1|sha256) ([A-Za-z0-9+/]+={0,2})$/.exec(String(value)) ?? []
  if (algorithm) return { hash: createHash(algorithm), digest }
  throw errors.malformedTus('Upload-Checksum must be sha1 or sha256, a space, and base64')
}

/**
 * What the metadata of an upload ask for: its conditions, and its path, where a `filename` is in the directory of the query.
 * @throws {HttpError} `malformed_request`; `pathIn` also `invalid_path` and `reserved_path`.
 */
export function readMetadata(header: string) {
  const values = new Map<string, string>()
  for (const pair of header.split(',')) {
    const [, key, value = ''] = /^(\S+)(?: +([A-Za-z0-9+/]*={0,2}))?$/.exec(pair.trim()) ?? []
    const bytes = Buffer.from(value, 'base64')
    if (key === undefined || values.has(key) || !isUtf8(bytes))
      throw errors.malformedTus('Upload-Metadata must be distinct keys, each with UTF-8 in base64')
    values.set(key, bytes.toString())
  }
  const { path, filename, overwrite = 'true', if_match: ifMatch } = Object.fromEntries(values)
  if (overwrite !== 'true' && overwrite !== 'false')
    throw errors.malformedTus('overwrite in Upload-Metadata must be true or false')
  const ifNoneMatch = overwrite === 'false' ? '*' : undefined
  const conditions = conditionsOf({ 'if-match': ifMatch, 'if-none-match': ifNoneMatch })
  const pathIn = (folder = '') => {
    if (path !== undefined) return readWrittenPath(path)
    if (filename !== undefined) return readPath(join(readDirectory(folder), filename))
    throw errors.malformedTus('Upload-Metadata must have a path, or a filename')
  }
  return { conditions, pathIn }
}

/** Response headers that a page of another origin may read, besides those of all routes. */
export const exposedTusHeaders = [
  ...['content-location', 'repr-digest', 'upload-offset', 'upload-length'],
  ...['upload-defer-length', 'upload-metadata', 'upload-expires', 'tus-resumable', 'tus-version'],
  ...['tus-max-size', 'tus-extension', 'tus-checksum-algorithm'],
]
