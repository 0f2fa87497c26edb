import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { readIfMatch } from '@domains-and-files/http'
import { checksumMismatch, malformedTus } from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'

// The request headers of tus 1.0.0 (https://tus.io/protocols/resumable-upload): every fault is 400 `malformed_request`.

/** The media type of bytes that are appended to an upload. */
export const offsetStream = 'application/offset+octet-stream'

/** A number of bytes; undefined without the header. */
export function readBytes(headers: IncomingHttpHeaders, name: string): number | undefined {
  const value = headers[name]?.toString()
  if (value === undefined) return undefined
  if (!/^\d{1,15}$/.test(value)) throw malformedTus(`${name} must be a number of bytes`)
  return Number(value)
}

/** `Upload-Length`, or null with `Upload-Defer-Length: 1`. */
export function readNewLength(headers: IncomingHttpHeaders): number | null {
  const length = readBytes(headers, 'upload-length')
  const deferred = headers['upload-defer-length']?.toString()
  if (deferred !== undefined && deferred !== '1')
    throw malformedTus('Upload-Defer-Length can only be 1')
  if ((length === undefined) === (deferred === undefined))
    throw malformedTus('Send either Upload-Length or Upload-Defer-Length: 1')
  return length ?? null
}

/** Where an upload goes, by its metadata and the directory in the query. */
export interface Target {
  path: string
  conditions: Conditions
}

/** @throws {HttpError} `invalid_path` and `reserved_path` too. */
export function readTarget(metadata: string, folder: string | undefined): Target {
  const values = readMetadata(metadata)
  const [path, filename] = [values.get('path'), values.get('filename')]
  const overwrite = values.get('overwrite') ?? 'true'
  const ifMatch = values.get('if_match')
  if (overwrite !== 'true' && overwrite !== 'false')
    throw malformedTus('overwrite in Upload-Metadata must be true or false')
  if (path === undefined && filename === undefined)
    throw malformedTus('Upload-Metadata must have a path, or a filename')
  return {
    path:
      path === undefined
        ? readPath(join(readDirectory(folder ?? ''), filename ?? ''))
        : readWrittenPath(path),
    conditions: {
      ...(overwrite === 'false' && { ifNoneMatch: '*' as const }),
      ...(ifMatch !== undefined && { ifMatch: readIfMatch(ifMatch) }),
    },
  }
}

function readMetadata(header: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const pair of header.trim() === '' ? [] : header.split(',')) {
    const [key = '', value = '', ...rest] = pair.split(' ').filter((part) => part !== '')
    const isRight = /^\S+$/.test(key) && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && rest.length === 0
    if (!isRight || values.has(key))
      throw malformedTus(
        'Upload-Metadata must be a list of distinct keys, each with a base64 value',
      )
    values.set(key, decode(key, value))
  }
  return values
}

function decode(key: string, value: string): string {
  const bytes = Buffer.from(value, 'base64')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformedTus(`${key} in Upload-Metadata is not UTF-8`)
  }
}

/** Checks the bytes of a request against `Upload-Checksum`: called with each chunk, and at the end without one. */
export function readChecksum(headers: IncomingHttpHeaders): ((chunk?: Buffer) => void) | undefined {
  const value = headers['upload-checksum']?.toString()
  if (value === undefined) return undefined
  const [, algorithm = '', expected = ''] = /^(\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(value) ?? []
  if (!checksumAlgorithms.includes(algorithm))
    throw malformedTus('Upload-Checksum must be sha1 or sha256, a space, and the digest in base64')
  const hash = createHash(algorithm)
  return (chunk) => {
    if (chunk) hash.update(chunk)
    else if (hash.digest('base64') !== expected) throw checksumMismatch()
  }
}

export const checksumAlgorithms = ['sha1', 'sha256']

/** Response headers that a page of another origin may read. */
export const exposedTusHeaders = [
  'content-location',
  'repr-digest',
  'tus-checksum-algorithm',
  'tus-extension',
  'tus-max-size',
  'tus-resumable',
  'tus-version',
  'upload-defer-length',
  'upload-expires',
  'upload-length',
  'upload-metadata',
  'upload-offset',
]
