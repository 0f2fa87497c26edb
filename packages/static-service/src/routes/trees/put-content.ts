import { callerOf } from '@domains-and-files/auth'
import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import {
  contentCodingNotSupported,
  digestMismatch,
  fileTooLarge,
  insufficientStorage,
  quotaExceeded,
} from '../../errors.ts'
import { refuseContentCoding, type UploadLimits } from '../files/upload-limits.ts'
import { file } from '../openapi-examples.ts'
import { readBody } from '../read-body.ts'

interface Dependencies {
  catalog: Catalog
  store: BlobStore
  limits: UploadLimits
}

const ContentPath = z.object({
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits in lower case')
    .meta({ description: 'SHA-256 of the body', examples: [file.sha256] }),
})

// It replaces no file.
const noPath = ''

const putContentSchema = (maxBytes: number) => ({
  operationId: 'putContent',
  summary: 'Store a content that a manifest is going to name',
  description:
    'It is kept for a day without a file, for manifests of the same caller. The body is the content, of any type.',
  tags: ['trees'],
  params: ContentPath,
  errors: [
    digestMismatch('its name'),
    fileTooLarge(maxBytes),
    contentCodingNotSupported(),
    insufficientStorage(),
    quotaExceeded(10_737_418_240),
  ],
  responses: { 201: { description: 'Stored' }, 204: { description: 'It was stored already' } },
  consumes: ['application/octet-stream'],
  body: z.any().meta({ type: 'string', format: 'binary', examples: ['Hello, files\n'] }),
  response: { 201: z.undefined(), 204: z.undefined() },
})

/** Route PUT /api/contents/{sha256}; in the scope of `registerPutTreeRoutes`, which leaves bodies to handlers. */
export function putContent(app: App, { catalog, store, limits }: Dependencies) {
  app.put(
    '/api/contents/:sha256',
    {
      config: { access: 'editor', folders: 'none' },
      onRequest: async ({ headers }) => {
        refuseContentCoding(headers)
        const length = Number(headers['content-length'] ?? 0)
        limits.checkSize(length)
        await limits.checkQuota(noPath, length)
        // Ignored, also where it is malformed: the framework would refuse it.
        delete headers['content-type']
      },
      schema: putContentSchema(limits.maxBytes),
    },
    async (request, reply) => {
      const count = limits.meter(noPath)
      await using draft = store.draft()
      await readBody(request.raw, async (chunks) => {
        for await (const chunk of chunks) {
          await count(chunk.length)
          await draft.write(chunk)
        }
        await draft.seal()
      })
      const content = await draft.keep()
      if (content.digest !== request.params.sha256) throw digestMismatch('its name')
      const caller = callerOf(request)
      const known = await catalog.contentSizes([content.digest], caller)
      await catalog.keepContents([content], { callerId: caller.id, isLimited: true })
      return reply.code(known.size > 0 ? 204 : 201).send(undefined)
    },
  )
}
