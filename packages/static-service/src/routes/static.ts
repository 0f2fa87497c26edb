import type { App } from '@domains-and-files/http'
import type { FastifySchema } from 'fastify'
import { z } from 'zod'
import { fileNotFound, invalidPath, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { file, restOfUrl } from './schemas.ts'

const exampleTag = `"${file.sha256}"`

const mayRepeat = z.union([z.string(), z.array(z.string())]).optional()

const StaticQuery = z.looseObject({
  v: mayRepeat.describe('at least 8 leading hex digits of the SHA-256: this content may be cached for ever'),
  download: mayRepeat.describe('with any value or none: the browser saves the file'),
})

export const staticSchema = {
  operationId: 'getContent',
  summary: 'The content of a file',
  description:
    'Public. Supports conditions (also If-Match, If-Modified-Since and If-Unmodified-Since), ranges, and compressed text by Accept-Encoding. Other query parameters are ignored.',
  tags: ['static'],
  requestHeaders: {
    'if-none-match': { description: 'The ETag of the cached response', example: exampleTag },
    range: { description: 'Parts of the file, in bytes', example: 'bytes=0-4' },
    'if-range': { description: 'The ETag of the cached parts: another one gets the whole file', example: exampleTag },
  },
  errors: [
    invalidPath('a segment is . or ..'),
    fileNotFound(file.path),
    preconditionFailed(file.path),
    rangeNotSatisfiable(file.size),
  ],
  responses: {
    200: { description: 'The whole file, with its content type', content: '*/*' },
    206: { description: 'The requested ranges; several as multipart/byteranges', content: '*/*' },
    302: { description: 'A directory with an index: to its own name, with a slash' },
    304: { description: 'The file is unchanged by the condition' },
  },
  params: restOfUrl('the path of a file', file.path),
  querystring: StaticQuery,
}

/** Documents what a `RawRoute` answers before the framework. */
export function documentRawRoute(app: App, url: string, schema: FastifySchema): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    config: { access: 'public' },
    schema,
    handler: () => {
      throw new Error(`a request for ${url} has reached the framework`)
    },
  })
}
