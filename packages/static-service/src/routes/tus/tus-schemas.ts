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

const header = (description: string, example: string): HeaderDoc => ({ description, example })

const docs = {
  'tus-resumable': header('Version of the protocol, the only one', '1.0.0'),
  'upload-offset': header('Bytes that are durable: where those of a PATCH belong', '8388608'),
  'upload-expires': header(
    'When the upload is removed unless it is continued',
    'Sat, 16 Jan 2027 09:30:00 GMT',
  ),
  'content-location': header(
    'URL of the record, once the file is stored; `ETag` and `Repr-Digest` come with it',
    `/api/files/${file.path}`,
  ),
  location: header('URL of the upload', '/api/uploads/5f0c1a52'),
  'upload-length': header('Bytes of the file', '104857600'),
  'upload-defer-length': header('The length comes with a PATCH', '1'),
  'upload-metadata': header(
    '`path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept',
    `path ${Buffer.from(file.path).toString('base64')}`,
  ),
  'upload-checksum': header(
    'sha1 or sha256 of the body in base64, without which nothing of it counts',
    'sha256 LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=',
  ),
  'if-match': header('Replaces the condition of the metadata', '"abc"'),
}

const pick = (...names: (keyof typeof docs)[]) =>
  Object.fromEntries(names.map((name) => [name, docs[name]]))

const progress = ['tus-resumable', 'upload-offset', 'upload-expires', 'content-location'] as const
const sent = ['tus-resumable', 'upload-length', 'upload-checksum'] as const

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
  requestHeaders: pick(...sent, 'upload-defer-length', 'upload-metadata'),
  errors: [
    malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
    concatenationNotSupported(),
    tooManyUploads(100),
    ...writeErrors(maxBytes),
  ],
  ...answers(
    201,
    'Created; with all bytes in the body, the file is stored',
    z.undefined(),
    pick('location', ...progress),
  ),
})

export const patchSchema = (maxBytes: number) => ({
  operationId: 'appendToUpload',
  summary: 'Append bytes to an upload',
  description:
    'The request that completes the file stores it. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
  tags: ['files'],
  params: UploadId,
  requestHeaders: pick(...sent, 'upload-offset', 'if-match'),
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
  ...answers(204, 'The bytes are durable', z.undefined(), pick(...progress)),
})

export const deleteSchema = {
  operationId: 'deleteUpload',
  summary: 'Remove an unfinished upload',
  description: 'The file of a finished one stays.',
  tags: ['files'],
  params: UploadId,
  requestHeaders: pick('tus-resumable'),
  errors: [
    malformedTus('Upload-Offset must be a number of bytes'),
    tusVersionNotSupported(),
    uploadNotFound(),
    uploadEnded(),
    uploadLocked(),
  ],
  ...answers(204, 'Removed', z.undefined(), pick('tus-resumable')),
}

/** Response headers that a page of another origin may read. */
export const exposedTusHeaders = [
  ...Object.keys(docs),
  ...['repr-digest', 'tus-checksum-algorithm', 'tus-extension', 'tus-max-size', 'tus-version'],
]
