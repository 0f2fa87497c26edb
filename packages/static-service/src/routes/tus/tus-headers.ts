import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { readIfMatch } from '@domains-and-files/http'
import { z } from 'zod'
import { malformedTus } from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'

/** The media type of bytes that are appended to an upload. */
export const offsetStream = 'application/offset+octet-stream'

const Bytes = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a number of bytes')
  .transform(Number)
  .optional()

// https://tus.io/protocols/resumable-upload
const TusHeaders = z.object({
  'upload-offset': Bytes,
  'upload-length': Bytes,
  'upload-defer-length': z.literal('1', 'can only be 1').optional(),
  'upload-metadata': z.string().default(''),
  'upload-checksum': z
    .string()
    .regex(
      /^(?:sha1|sha256) [A-Za-z0-9+/]+={0,2}$/,
      'must be sha1 or sha256, a space, and the digest in base64',
    )
    .optional(),
})

/** The request headers of tus 1.0.0, those with numbers of bytes as such. @throws {HttpError} `malformed_request`. */
export function readTusHeaders(headers: IncomingHttpHeaders): z.output<typeof TusHeaders> {
  const { data, error } = TusHeaders.safeParse(headers)
  if (data) return data
  throw malformedTus(
    error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; '),
  )
}

/**
 * The path that an upload goes to, by its metadata and the directory in the query.
 * @throws {HttpError} `malformed_request`, `invalid_path` and `reserved_path`.
 */
export function readTarget(metadata: string, folder = ''): string {
  const { path, filename } = readMetadata(metadata)
  if (path !== undefined) return readWrittenPath(path)
  if (filename === undefined) throw malformedTus('Upload-Metadata must have a path, or a filename')
  return readPath(join(readDirectory(folder), filename))
}

/** The conditions of an upload. @throws {HttpError} `malformed_request`. */
export function readConditions(metadata: string): Conditions {
  const { overwrite = 'true', if_match: ifMatch } = readMetadata(metadata)
  if (overwrite !== 'true' && overwrite !== 'false')
    throw malformedTus('overwrite in Upload-Metadata must be true or false')
  return {
    ...(overwrite === 'false' && { ifNoneMatch: '*' as const }),
    ...(ifMatch !== undefined && { ifMatch: readIfMatch(ifMatch) }),
  }
}

function readMetadata(header: string): Partial<Record<string, string>> {
  const values = new Map<string, string>()
  for (const pair of header.split(',')) {
    const [, key, value = ''] = /^(\S+)(?: +([A-Za-z0-9+/]*={0,2}))?$/.exec(pair.trim()) ?? []
    const bytes = Buffer.from(value, 'base64')
    if (key === undefined || values.has(key) || !isUtf8(bytes))
      throw malformedTus('Upload-Metadata must be distinct keys, each with UTF-8 in base64')
    values.set(key, bytes.toString())
  }
  return Object.fromEntries(values)
}
