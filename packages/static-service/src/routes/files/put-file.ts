import type { App } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import {
  contentCodingNotSupported,
  digestMismatch,
  encodedSlash,
  fileTooLarge,
  partialPut,
} from '../../errors.ts'
import { checkDigests } from '../../files/content-digest.ts'
import { readUrlPath } from '../../files/file-path.ts'
import { file, uploadConditions, uploadErrors, uploadHeaders } from '../openapi-examples.ts'
import { readBody } from '../read-body.ts'
import { FileRecord } from './file-schema.ts'
import { conditionsOf, FilePath, pathFaults } from './files.ts'
import { sendStored, storeFiles } from './store-files.ts'
import { refuseContentCoding, type UploadLimits } from './upload-limits.ts'
import type { UploadDependencies } from './uploads.ts'

const putFileSchema = (maxBytes: number) => ({
  operationId: 'putFile',
  summary: 'Store the request body as a file',
  description:
    'The body is the file, of any content type: `curl -T`. Replaces an existing file under the same conditions as an upload. The ETag of the response is that of the record; If-Match also accepts the quoted `sha256`.',
  tags: ['files'],
  params: FilePath,
  requestHeaders: {
    ...uploadConditions,
    'content-digest': {
      description: 'SHA-256 of the body (RFC 9530), checked before anything is stored',
      example: `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
    },
  },
  errors: [
    ...uploadErrors,
    ...pathFaults,
    encodedSlash('notes/hello.txt'),
    digestMismatch('Content-Digest'),
    partialPut(),
    contentCodingNotSupported(),
    fileTooLarge(maxBytes),
  ],
  responses: {
    200: { description: 'Replaced: the record of the file', headers: uploadHeaders },
    201: { description: 'Created: the record of the file', headers: uploadHeaders },
  },
  consumes: ['application/octet-stream'],
  body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
  response: { 200: FileRecord, 201: FileRecord },
})

export async function registerPutRoute(app: App, dependencies: UploadDependencies) {
  await app.register(async (scope) => {
    // Encapsulated: the handler reads the body of any content type itself.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    putFile(scope, dependencies)
  })
}

function putFile(app: App, dependencies: UploadDependencies) {
  const { store, limits } = dependencies
  app.put(
    '/api/files/*',
    {
      config: { access: 'editor', folders: 'path' },
      onRequest: async (request) => {
        await refuseEarly(request, limits)
        // Ignored, also where it is malformed: the framework would refuse it.
        delete request.headers['content-type']
      },
      schema: putFileSchema(limits.maxBytes),
    },
    async (request, reply) => {
      const path = readUrlPath(request.url, request.params['*'])
      const digests = checkDigests(request.headers)
      const count = limits.meter(path)
      await using draft = store.draft()
      await readBody(request.raw, async (chunks) => {
        for await (const chunk of chunks) {
          const isChecked = count(chunk.length)
          if (isChecked) await isChecked
          digests.update(chunk)
          await draft.write(chunk)
        }
        await draft.seal()
      })
      digests.end()
      return sendStored(reply, await storeFiles(request, [{ path, draft }], dependencies))
    },
  )
}

// Everything that the headers decide, before the first byte of the body.
async function refuseEarly(request: FastifyRequest, limits: UploadLimits) {
  const { headers, url } = request
  const { '*': rest } = FilePath.parse(request.params)
  const path = readUrlPath(url, rest)
  if (headers['content-range'] !== undefined) throw partialPut()
  refuseContentCoding(headers)
  checkDigests(headers)
  await limits.checkTarget(path, conditionsOf(headers))
  const length = headers['content-length']
  if (length === undefined) return
  limits.checkSize(Number(length))
  await limits.checkQuota(path, Number(length))
}
