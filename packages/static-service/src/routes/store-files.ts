import { callerOf } from '@domains-and-files/auth'
import type { FastifyRequest } from 'fastify'
import type { StagedBlob } from '../blobs/staged-blob.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { FileRow } from '../files/file-record.ts'
import { categoryOf, contentTypeOf } from '../files/media-type.ts'
import { nameOf } from '../files/path-segments.ts'
import { actorOf } from './actor.ts'
import { conditionsOf } from './files.ts'
import { requirePath } from './folder-limits.ts'

interface Dependencies {
  catalog: Catalog
  /** Called with each file after its transaction. */
  onStored: (row: FileRow) => void
}

/** A content that has arrived, and the path it goes to. */
export interface Arrival {
  path: string
  draft: StagedBlob
}

/**
 * Stores all files or none, under the conditions of the request. Bytes first, rows last: every content is durable
 * before any file is visible.
 * @throws {HttpError} `file_not_found` outside the caller's folders, or what `Catalog.put` throws.
 */
export async function storeFiles(
  request: FastifyRequest,
  arrivals: Arrival[],
  { catalog, onStored }: Dependencies,
) {
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
  const stored = await catalog.put(files, conditionsOf(request.headers), actorOf(request))
  for (const row of stored.rows) onStored(row)
  return stored
}
