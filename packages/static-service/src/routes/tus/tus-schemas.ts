import { answers, type HeaderDoc } from '@domains-and-files/http'
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
  'content-location': {
    description:
      'URL of the record, once the file is stored; `ETag` and `Repr-Digest` come with it',
    example: `/api/files/${file.path}`,
  },
}

const bodyHeaders: Record<string, HeaderDoc> = {
  ...version,
  'upload-length': { description: 'Bytes of the file', example: '104857600' },
  'upload-checksum': {
    description: 'sha1 or sha256 of the body in base64, without which nothing of it counts',
    example: 'sha256 LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=',
  },
}

const UploadId = z.object({
  id: z
    .string()
    .max(64)
    .meta({ examples: ['5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44'] }),
})

const writeErrors = (maxBytes: number) => [
  tusVersionNotSupported(),
  fileTooLarge(maxBytes),
  uploadLocked(),
  checksumMismatch(),
  notOffsetStream(),
  ...uploadErrors,
]

export const createSchema = (maxBytes: number) => ({
  operationId: 'createUpload',
  summary: 'Begin a resumable upload',
  description:
    'tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.',
  tags: ['files'],
  querystring: z.strictObject({
    folder: z
      .string()
      .optional()
      .meta({ description: 'directory of a file named by `filename`', examples: ['notes'] }),
  }),
  requestHeaders: {
    ...bodyHeaders,
    'upload-defer-length': { description: 'The length comes with a PATCH', example: '1' },
    'upload-metadata': {
      description: '`path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept',
      example: `path ${Buffer.from(file.path).toString('base64')}`,
    },
  },
  errors: [
    malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
    concatenationNotSupported(),
    tooManyUploads(100),
    ...writeErrors(maxBytes),
  ],
  ...answers(201, 'Created; with all bytes in the body, the file is stored', z.undefined(), {
    location: { description: 'URL of the upload', example: '/api/uploads/5f0c1a52' },
    ...progress,
  }),
})

export const patchSchema = (maxBytes: number) => ({
  operationId: 'appendToUpload',
  summary: 'Append bytes to an upload',
  description:
    'The request that completes the file stores it. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
  tags: ['files'],
  params: UploadId,
  requestHeaders: {
    ...bodyHeaders,
    'upload-offset': { description: 'Where the bytes belong: where HEAD says', example: '0' },
    'if-match': { description: 'Replaces the condition of the metadata', example: '"abc"' },
  },
  consumes: [offsetStream],
  body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
  errors: [
    malformedTus('Send Upload-Offset'),
    uploadNotFound(),
    uploadEnded(),
    offsetConflict(8_388_608),
    uploadLengthExceeded(104_857_600),
    ...writeErrors(maxBytes),
  ],
  ...answers(204, 'The bytes are durable', z.undefined(), progress),
})

export const deleteSchema = {
  operationId: 'deleteUpload',
  summary: 'Remove an unfinished upload',
  description: 'The file of a finished one stays.',
  tags: ['files'],
  params: UploadId,
  requestHeaders: version,
  errors: [
    malformedTus('Upload-Offset must be a number of bytes'),
    tusVersionNotSupported(),
    uploadNotFound(),
    uploadEnded(),
    uploadLocked(),
  ],
  ...answers(204, 'Removed', z.undefined(), version),
}

/** Response headers that a page of another origin may read. */
export const exposedTusHeaders = [
  ...Object.keys(progress),
  ...['repr-digest', 'upload-length', 'upload-metadata', 'upload-defer-length'],
  ...['tus-checksum-algorithm', 'tus-extension', 'tus-max-size', 'tus-version'],
]
