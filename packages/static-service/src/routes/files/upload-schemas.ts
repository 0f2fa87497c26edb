import { answers, operation } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../../errors.ts'
import {
  file,
  fileTooLarge,
  storedAnswers,
  uploadConditions,
  uploadErrors,
} from '../openapi-examples.ts'
import { FileRecord } from './file-schema.ts'

const binary = { type: 'string', format: 'binary' } as const

const formErrors = [
  ...uploadErrors,
  errors.reservedPath('tree'),
  errors.fileNotFound(file.path),
  errors.malformedUpload(undefined),
  errors.notMultipart(),
  errors.contentCodingNotSupported(),
]

export const uploadFile = operation({
  access: 'editor',
  folders: 'handler',
  operationId: 'uploadFile',
  summary: 'Store one file',
  description:
    'Replaces an existing file; `If-None-Match: *` forbids that, `If-Match` allows it for one state of the file only. After the response the bytes are durable; a failed upload leaves nothing behind.',
  tags: ['files'],
  requestHeaders: uploadConditions,
  errors: [...formErrors, fileTooLarge, errors.fileMissing('file'), errors.tooManyFiles(1)],
  responses: storedAnswers,
  consumes: ['multipart/form-data'],
  body: z.any().meta({
    type: 'object',
    examples: [{ file: 'Hello, files\n', path: 'notes/' }],
    required: ['file'],
    properties: {
      file: binary,
      path: {
        type: 'string',
        examples: ['notes/'],
        description: 'whole path, or a directory with a trailing slash; default: the file name',
      },
    },
  }),
  response: { 200: FileRecord, 201: FileRecord },
})

export const uploadFiles = operation({
  access: 'editor',
  folders: 'handler',
  operationId: 'uploadFiles',
  summary: 'Store several files, all or none',
  description:
    'A file name may contain a relative directory, as browsers send it for a folder. Replaces existing files; `If-None-Match: *` forbids that, and the refusal names all that exist in `paths`.',
  tags: ['files'],
  requestHeaders: uploadConditions,
  errors: [
    ...formErrors,
    fileTooLarge,
    errors.fileMissing('files'),
    errors.tooManyFiles(100),
    errors.duplicatePath(file.path),
  ],
  consumes: ['multipart/form-data'],
  body: z.any().meta({
    type: 'object',
    examples: [{ files: ['Hello, files\n'], path: 'notes' }],
    required: ['files'],
    properties: {
      files: { type: 'array', items: binary },
      path: { type: 'string', description: 'directory of all files', examples: ['notes'] },
    },
  }),
  ...answers(201, 'The records in the order sent', z.object({ files: z.array(FileRecord) })),
})
