import { callerOf } from '@domains-and-files/auth'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { StagedBlob } from '../../blobs/staged-blob.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { encodePath } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { categoryOf, contentTypeOf } from '../../files/media-type.ts'
import { nameOf } from '../../files/path-segments.ts'
import { actorOf } from '../actor.ts'
import { requirePath } from '../folder-limits.ts'
import type { DescribedFile, DescribeFiles } from './file-schema.ts'
import { conditionsOf } from './files.ts'

interface Dependencies {
  catalog: Catalog
  describe: DescribeFiles
  /** Called with each file after its transaction. */
  onStored: (row: FileRow) => void
}

interface StoredFiles {
  stored: DescribedFile[]
  wasNew: boolean
}

/** A content that has arrived, and the path it goes to. */
export interface Arrival {
  path: string
  draft: Pick<StagedBlob, 'head' | 'keep'>
}

/**
 * Stores all files or none, under these conditions, by default those of the request. Bytes first, rows last: every content
 * is durable before any file is visible.
 * @throws {HttpError} `file_not_found` outside the caller's folders, or what `Catalog.put` throws.
 */
export async function storeFiles(
  request: FastifyRequest,
  arrivals: Arrival[],
  { catalog, describe, onStored }: Dependencies,
  conditions = conditionsOf(request.headers),
): Promise<StoredFiles> {
  const caller = callerOf(request)
  for (const { path } of arrivals) requirePath(caller, path)
  const uploadedBy = caller.username
  const files = await Promise.all(
    arrivals.map(async ({ path, draft }) => {
      const contentType = await contentTypeOf(nameOf(path), draft.head)
      const blob = await draft.keep()
      return { ...blob, path, contentType, category: categoryOf(contentType), uploadedBy }
    }),
  )
  const { rows, wasNew } = await catalog.put(files, conditions, actorOf(request))
  for (const row of rows) onStored(row)
  return { stored: await describe(rows), wasNew }
}

/** Answers the upload of one file. */
export function sendStored(reply: FastifyReply, { stored, wasNew }: StoredFiles) {
  const [file] = stored
  if (!file) throw new Error('the catalog returned no row')
  return reply
    .code(wasNew ? 201 : 200)
    .header('location', `/api/files/${encodePath(file.record.path)}`)
    .header('etag', file.etag)
    .send(file.record)
}
