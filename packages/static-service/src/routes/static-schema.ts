import { z } from 'zod'
import { fileNotFound, invalidPath, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { file } from './openapi-examples.ts'

const AtStaticPath = z.object({
  '*': z.string().meta({ description: 'the path of a file', examples: [file.path] }),
})

const exampleTag = `"${file.sha256}"`

const contentHeaders = {
  etag: { description: 'Of these bytes in this form: strong', example: exampleTag },
  'last-modified': {
    description: 'When the file was stored',
    example: 'Fri, 15 Jan 2027 09:30:00 GMT',
  },
  'cache-control': {
    description: 'As STATIC_CACHE_CONTROL says; with a `v` that is right, for ever',
    example: 'public, max-age=0, must-revalidate',
  },
}

export const StaticQuery = z.looseObject({
  v: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({
      description: 'at least 8 leading hex digits of the SHA-256: this very content, for ever',
    }),
  download: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({ description: 'with any value or none: to be saved, not shown' }),
})

/** What GET /static/{path} takes and answers. */
export const staticSchema = {
  operationId: 'getContent',
  summary: 'The content of a file',
  description:
    'For everybody, by the rules of HTTP: conditions (also If-Match, If-Modified-Since and If-Unmodified-Since), ranges, and texts compressed as Accept-Encoding admits. Other query parameters are ignored.',
  tags: ['static'],
  requestHeaders: {
    'if-none-match': { description: 'The ETag of what you have', example: exampleTag },
    range: { description: 'Parts of the file, in bytes', example: 'bytes=0-4' },
    'if-range': {
      description: 'The ETag of the parts that you have: else the whole file',
      example: exampleTag,
    },
  },
  errors: [
    invalidPath('a segment is . or ..'),
    fileNotFound(file.path),
    preconditionFailed(file.path),
    rangeNotSatisfiable(file.size),
  ],
  responses: {
    200: {
      description: 'The whole file, in its own content type',
      headers: contentHeaders,
      content: '*/*',
    },
    206: {
      description: 'The parts that were asked for; several as multipart/byteranges',
      headers: {
        ...contentHeaders,
        'content-range': { description: 'Which part, of how many', example: 'bytes 0-4/13' },
      },
      content: '*/*',
    },
    302: {
      description: 'A directory with an index: to its own name, with a slash',
      headers: { location: { description: 'Relative to this path', example: './site/' } },
    },
    304: { description: 'The file is still as the condition says', headers: contentHeaders },
  },
  params: AtStaticPath,
  querystring: StaticQuery,
}
