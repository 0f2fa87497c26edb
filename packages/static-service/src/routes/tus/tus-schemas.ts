import type { HeaderDoc } from '@domains-and-files/http'
import { z } from 'zod'
import {
  checksumMismatch,
  concatenationNotSupported,
  fileTooLarge,
  malformedTus,
  notOffsetStream,
  offsetConflict,
  tooManyUploads,
  tusVersionNotSupported,
  uploadEnded,
  uploadLengthExceeded,
  uploadLocked,
  uploadNotFound,
} from '../../errors.ts'
import { file, uploadErrors } from '../openapi-examples.ts'
import { offsetStream } from './tus-headers.ts'

// The OpenAPI document of /api/uploads/.

const tags = ['files']

const version: Record<string, HeaderDoc> = {
  'tus-resumable': { description: 'Version of the protocol, the only one', example: '1.0.0' },
}

const progress: Record<string, HeaderDoc> = {
  ...version,
  'upload-offset': { description: 'Bytes that are durable', example: '8388608' },
  'upload-expires': {
    description: 'When the upload is removed unless it is continued',
    example: 'Sat, 16 Jan 2027 09:30:00 GMT',
  },
}

const stored: Record<string, HeaderDoc> = {
  'content-location': {
    description:
      'URL of the record, once the file is stored; `ETag` and `Repr-Digest` come with it',
    example: `/api/files/${file.path}`,
  },
}

const lengthHeader: Record<string, HeaderDoc> = {
  'upload-length': { description: 'Bytes of the file', example: '104857600' },
}

const checksumHeader: Record<string, HeaderDoc> = {
  'upload-checksum': {
    description: 'sha1 or sha256 of the body in base64, without which nothing of it counts',
    example: 'sha256 LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=',
  },
}

const bytes = {
  consumes: [offsetStream],
  body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
}

const UploadId = z.object({
  id: z
    .string()
    .max(64)
    .meta({ examples: ['5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44'] }),
})

const namedErrors = [
  malformedTus('Send Upload-Offset'),
  tusVersionNotSupported(),
  uploadNotFound(),
  uploadEnded(),
]

const writeErrors = [uploadLocked(), checksumMismatch(), notOffsetStream(), ...uploadErrors]

export const createSchema = (maxBytes: number) => ({
  operationId: 'createUpload',
  summary: 'Begin a resumable upload',
  description:
    'tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.',
  tags,
  querystring: z.strictObject({
    folder: z
      .string()
      .optional()
      .meta({ description: 'directory of a file named by `filename`', examples: ['notes'] }),
  }),
  requestHeaders: {
    ...version,
    ...lengthHeader,
    ...checksumHeader,
    'upload-defer-length': { description: 'The length comes with a PATCH', example: '1' },
    'upload-metadata': {
      description: '`path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept',
      example: `path ${Buffer.from(file.path).toString('base64')}`,
    },
  },
  errors: [
    malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
    concatenationNotSupported(),
    tusVersionNotSupported(),
    fileTooLarge(maxBytes),
    tooManyUploads(100),
    ...writeErrors,
  ],
  responses: {
    201: {
      description: 'Created; with all bytes in the body, the file is stored',
      headers: {
        location: { description: 'URL of the upload', example: '/api/uploads/5f0c1a52' },
        ...progress,
        ...stored,
      },
    },
  },
  response: { 201: z.undefined() },
})

export const patchSchema = (maxBytes: number) => ({
  operationId: 'appendToUpload',
  summary: 'Append bytes to an upload',
  description:
    'The request that completes the file stores it. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
  tags,
  params: UploadId,
  requestHeaders: {
    ...version,
    'upload-offset': { description: 'Where the bytes belong: where HEAD says', example: '0' },
    ...lengthHeader,
    ...checksumHeader,
    'if-match': { description: 'Replaces the condition of the metadata', example: '"abc"' },
  },
  ...bytes,
  errors: [
    ...namedErrors,
    offsetConflict(8_388_608),
    uploadLengthExceeded(104_857_600),
    fileTooLarge(maxBytes),
    ...writeErrors,
  ],
  responses: {
    204: { description: 'The bytes are durable', headers: { ...progress, ...stored } },
  },
  response: { 204: z.undefined() },
})

export const deleteSchema = {
  operationId: 'deleteUpload',
  summary: 'Remove an unfinished upload',
  description: 'The file of a finished one stays.',
  tags,
  params: UploadId,
  requestHeaders: version,
  errors: [...namedErrors, uploadLocked()],
  responses: { 204: { description: 'Removed', headers: version } },
  response: { 204: z.undefined() },
}
