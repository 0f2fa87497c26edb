import { readmit } from '@domains-and-files/auth'
import { type App, bodyChunks, eachAnswer, operations } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../../errors.ts'
import { checkDigests } from '../../files/content-digest.ts'
import { readUrlPath } from '../../files/file-path.ts'
import { file, fileTooLarge, uploadConditions, uploadErrors } from '../openapi-examples.ts'
import { storedAnswers } from './file-schema.ts'
import { FilePath } from './files.ts'
import {
  conditionsOf,
  type FileDependencies,
  refuseContentCoding,
  sendStored,
  stage,
  storeFiles,
} from './store-files.ts'

/** Routes whose handlers read bodies of any content type, but without a content coding, themselves. */
export async function registerRawBodies(app: App, register: (scope: App) => void) {
  await app.register(async (scope) => {
    scope.addHook('preParsing', async ({ headers }) => {
      refuseContentCoding(headers)
      // Ignored, also where it is malformed: the framework would refuse it.
      delete headers['content-type']
    })
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    register(scope)
  })
}

const bytes = {
  consumes: ['application/octet-stream'],
  body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
}

const ContentPath = z.object({
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits in lower case')
    .meta({ description: 'SHA-256 of the body', examples: [file.sha256] }),
})

// A content replaces no file.
const noPath = ''

const routes = operations({
  shared: { access: 'editor', folders: 'path', tags: ['files'] },
  putFile: {
    summary: 'Store the request body as a file',
    description:
      'The body is the file, of any content type: `curl -T`. Replaces an existing file under the same conditions as an upload. The ETag of the response is that of the record; If-Match also accepts the quoted `sha256`.',
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
      errors.encodedSlash('notes/hello.txt'),
      errors.digestMismatch('Content-Digest'),
      errors.partialPut(),
      errors.contentCodingNotSupported(),
      fileTooLarge,
    ],
    ...storedAnswers,
    ...bytes,
  },
  putContent: {
    folders: 'none',
    summary: 'Store a content that a manifest is going to name',
    description:
      'It is kept for a day without a file, for manifests of the same caller. The body is the content, of any type.',
    tags: ['trees'],
    params: ContentPath,
    errors: [
      errors.digestMismatch('its name'),
      fileTooLarge,
      errors.contentCodingNotSupported(),
      errors.insufficientStorage(),
      errors.quotaExceeded(10_737_418_240),
    ],
    ...eachAnswer({ 201: { description: 'Stored' }, 204: { description: 'It was stored already' } }),
    ...bytes,
  },
})

/** PUT of files and contents, in the scope of `registerRawBodies`. */
export function registerPutRoutes(app: App, dependencies: FileDependencies) {
  const { store, catalog, limits } = dependencies
  app.put('/api/files/*', routes.putFile, async (request, reply) => {
    const { headers, url } = request
    const path = readUrlPath(url, request.params['*'])
    // Validates the headers before the first byte of the body.
    if (headers['content-range'] !== undefined) throw errors.partialPut()
    const digests = checkDigests(headers)
    await limits.checkTarget(path, conditionsOf(headers))
    await limits.checkLength(path, headers)
    await using draft = store.draft()
    const options = { count: limits.meter(path), onChunk: digests.update }
    await stage(bodyChunks(request.raw), draft, options)
    digests.end()
    return sendStored(reply, await storeFiles(request, [{ path, draft }], dependencies))
  })
  app.put('/api/contents/:sha256', routes.putContent, async (request, reply) => {
    await limits.checkLength(noPath, request.headers)
    await using draft = store.draft()
    const options = { count: limits.meter(noPath) }
    await stage(bodyChunks(request.raw), draft, options)
    const content = await draft.keep()
    if (content.digest !== request.params.sha256) throw errors.digestMismatch('its name')
    const caller = await readmit(request)
    const known = await catalog.reads.contentSizes({ ...caller, digests: [content.digest] })
    await catalog.writes.keepContents({ contents: [content], callerId: caller.id, isLimited: true })
    return reply.code(known.size > 0 ? 204 : 201).send(undefined)
  })
}
