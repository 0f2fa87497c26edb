import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { answers, type HeaderDoc } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import { conditionsOf, rawBody } from '../files/store-files.ts'
import { file, uploadErrors } from '../openapi-examples.ts'

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

// The OpenAPI document of /api/uploads/, in short: clients know the protocol.

const requestHeaders: Record<string, HeaderDoc> = {
  'tus-resumable': { description: 'Version of the protocol, the only one', example: '1.0.0' },
  'upload-length': { description: 'Bytes of the file', example: '104857600' },
  'upload-metadata': {
    description: '`path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept',
    example: `path ${Buffer.from(file.path).toString('base64')}`,
  },
  'upload-offset': { description: 'Where the bytes of a PATCH belong', example: '8388608' },
}

const headers: Record<string, HeaderDoc> = {
  location: { description: 'URL of a new upload', example: '/api/uploads/5f0c1a52' },
  'upload-offset': { description: 'Bytes that are durable', example: '8388608' },
}

const folder = z.string().meta({ description: 'Directory of `filename`', examples: ['notes'] })

const shared = {
  tags: ['files'],
  requestHeaders,
  errors: [
    errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
    ...[errors.concatenationNotSupported(), errors.tusVersionNotSupported()],
    ...[errors.uploadNotFound(), errors.uploadEnded(), errors.uploadLocked()],
    ...[errors.offsetConflict(8_388_608), errors.uploadLengthExceeded(104_857_600)],
    ...[errors.fileTooLarge(10_737_418_240), errors.tooManyUploads(100)],
    ...[errors.notOffsetStream(), errors.checksumMismatch()],
    ...uploadErrors,
  ],
}

export const creationSchema = {
  operationId: 'createUpload',
  summary: 'Begin a resumable upload',
  description:
    'tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.',
  ...shared,
  querystring: z.strictObject({ folder: folder.optional() }),
  ...answers(201, 'Created; with all bytes, the file is stored', z.undefined(), headers),
}

export const params = z.object({ id: z.string().meta({ examples: ['5f0c1a52'] }) })

/** By the methods of an upload. */
export const methodSchemas = {
  HEAD: { hide: true },
  POST: { hide: true }, // With its method in a header.
  PATCH: {
    operationId: 'appendToUpload',
    summary: 'Append bytes to an upload',
    description:
      'The request that completes the file stores it, and responds with its `Content-Location`, `ETag` and `Repr-Digest`. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
    ...shared,
    consumes: ['application/offset+octet-stream'],
    body: rawBody('Hello, files\n'),
    ...answers(204, 'The bytes are durable', z.undefined(), headers),
  },
  DELETE: {
    operationId: 'deleteUpload',
    summary: 'Remove an unfinished upload',
    description: 'The file of a finished one stays.',
    ...shared,
    ...answers(204, 'Removed'),
  },
}

/** Response headers that a page of another origin may read, besides those of all routes. */
export const exposedTusHeaders = [
  ...['content-location', 'repr-digest', 'upload-offset', 'upload-length'],
  ...['upload-defer-length', 'upload-metadata', 'upload-expires', 'tus-resumable', 'tus-version'],
  ...['tus-max-size', 'tus-extension', 'tus-checksum-algorithm'],
]
