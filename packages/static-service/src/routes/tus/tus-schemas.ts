import { answers, type HeaderDoc } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../../errors.ts'
import { file, uploadErrors } from '../openapi-examples.ts'
import { offsetStream } from './tus-headers.ts'

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

const params = z.object({ id: z.string().meta({ examples: ['5f0c1a52'] }) })

const folder = z
  .optional(z.string())
  .meta({ description: 'Directory of `filename`', examples: ['notes'] })

const hidden = { hide: true, params }

/** Of the creation, and of the methods of an upload. */
export function tusSchemas(maxBytes: number) {
  const shared = {
    tags: ['files'],
    requestHeaders,
    errors: [
      errors.malformedTus('Send either Upload-Length or Upload-Defer-Length: 1'),
      errors.concatenationNotSupported(),
      errors.uploadNotFound(),
      errors.offsetConflict(8_388_608),
      errors.uploadEnded(),
      errors.tusVersionNotSupported(),
      errors.uploadLengthExceeded(104_857_600),
      errors.fileTooLarge(maxBytes),
      errors.notOffsetStream(),
      errors.uploadLocked(),
      errors.tooManyUploads(100),
      errors.checksumMismatch(),
      ...uploadErrors,
    ],
  }
  return {
    create: {
      operationId: 'createUpload',
      summary: 'Begin a resumable upload',
      description:
        'tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.',
      ...shared,
      querystring: z.strictObject({ folder }),
      ...answers(201, 'Created; with all bytes, the file is stored', z.undefined(), headers),
    },
    ofUpload: {
      HEAD: hidden,
      POST: hidden, // With its method in a header.
      PATCH: {
        operationId: 'appendToUpload',
        summary: 'Append bytes to an upload',
        description:
          'The request that completes the file stores it, and responds with its `Content-Location`, `ETag` and `Repr-Digest`. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.',
        ...shared,
        params,
        consumes: [offsetStream],
        body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
        ...answers(204, 'The bytes are durable', z.undefined(), headers),
      },
      DELETE: {
        operationId: 'deleteUpload',
        summary: 'Remove an unfinished upload',
        description: 'The file of a finished one stays.',
        ...shared,
        params,
        ...answers(204, 'Removed'),
      },
    },
  }
}

/** Response headers that a page of another origin may read. */
export const exposedTusHeaders = [
  ...['location', 'content-location', 'repr-digest', 'upload-offset', 'upload-length'],
  ...['upload-defer-length', 'upload-metadata', 'upload-expires', 'tus-resumable', 'tus-version'],
  ...['tus-max-size', 'tus-extension', 'tus-checksum-algorithm'],
]
