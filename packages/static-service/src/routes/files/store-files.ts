import type { IncomingHttpHeaders } from 'node:http'
import { readmit } from '@domains-and-files/auth'
import { readIfMatch, readIfNoneMatch } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { StagedBlob } from '../../blobs/staging-file.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { FileRow, NewFile } from '../../catalog/tables.ts'
import type { Config } from '../../config.ts'
import * as errors from '../../errors.ts'
import { encodePath, nameOf } from '../../files/file-path.ts'
import { categoryOf, contentTypeOf, typeByName } from '../../files/media-type.ts'
import { type Conditions, holds, mustBeNew, readHttpDate } from '../../rfc9110/conditional-requests.ts'
import type { ContentCache } from '../../serving/content-cache.ts'
import { actorOf, requirePath } from '../callers.ts'
import type { DescribedFile, DescribeFiles } from './file-schema.ts'

/** Preconditions of a request on the stored file (RFC 9110, 13.1). A malformed date is ignored (13.1.4). */
export function conditionsOf(headers: IncomingHttpHeaders): Conditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  const { 'if-unmodified-since': since } = headers
  return {
    ifMatch: ifMatch === undefined ? undefined : readIfMatch(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : readIfNoneMatch(ifNoneMatch),
    ifUnmodifiedSince: since === undefined ? undefined : readHttpDate(since),
  }
}

/** @throws {HttpError} `unsupported_media_type` for a body that would have to be decoded to be stored. */
export function refuseContentCoding({ 'content-encoding': coding }: IncomingHttpHeaders): void {
  if (coding !== undefined && coding.toLowerCase() !== 'identity') throw errors.contentCodingNotSupported()
}

/**
 * Takes the size of each chunk; a promise where the next chunk has to wait for a check.
 * @throws {HttpError} `file_too_large` or `quota_exceeded`.
 */
export type SizeMeter = (bytes: number) => Promise<void> | undefined

interface Limits {
  catalog: Pick<Catalog, 'findTarget' | 'readQuota'>
  maxBytes: number
  /** Maximum size of all distinct blobs; undefined: unlimited. */
  quotaBytes: number | undefined
}

/**
 * Refuses uploads as early as their end is certain: by Content-Length, by what is stored at the path, or as soon as a
 * limit is passed. The transaction that enters the file decides in the end.
 */
export class UploadLimits {
  readonly maxBytes: number
  readonly #catalog: Limits['catalog']
  readonly #quotaBytes: number

  constructor({ catalog, maxBytes, quotaBytes = Number.POSITIVE_INFINITY }: Limits) {
    this.maxBytes = maxBytes
    this.#catalog = catalog
    this.#quotaBytes = quotaBytes
  }

  /** @throws {HttpError} `file_too_large` or `quota_exceeded` for a file of this size or more, whatever is stored. */
  checkSize(bytes: number): void {
    if (bytes > this.maxBytes) throw errors.fileTooLarge(this.maxBytes)
    if (bytes > this.#quotaBytes) throw errors.quotaExceeded(this.#quotaBytes)
  }

  /** @throws {HttpError} `path_conflict` or `precondition_failed` where a file would be refused at this path now. */
  async checkTarget(path: string, conditions: Conditions): Promise<void> {
    const { row, conflicts } = await this.#catalog.findTarget(path)
    if (!row && conflicts) throw errors.pathConflict(path)
    if (!holds(conditions, row)) throw (mustBeNew(conditions) ? errors.fileExists : errors.preconditionFailed)(path)
  }

  /** @throws {HttpError} `quota_exceeded` if every size in this range exceeds the quota at this path now. */
  async checkQuota(path: string, minBytes: number, maxBytes = minBytes): Promise<void> {
    const quota = this.#quotaBytes
    if (quota === Number.POSITIVE_INFINITY) return
    const size = { minBytes, maxBytes }
    const { storedSize, hasSize, freed } = await this.#catalog.readQuota(path, size)
    if (storedSize + minBytes <= quota) return
    // The file may equal a stored blob, which takes no room, or replace one.
    if (!hasSize && storedSize - freed + minBytes > quota) throw errors.quotaExceeded(quota)
  }

  /** `checkSize` and `checkQuota` of the body that these headers announce. */
  async checkLength(path: string, { 'content-length': length }: IncomingHttpHeaders): Promise<void> {
    if (length === undefined) return
    this.checkSize(Number(length))
    await this.checkQuota(path, Number(length))
  }

  /** Counts the bytes of one file as they arrive; the path is undefined while it is unknown. */
  meter(path: string | undefined): SizeMeter {
    let total = 0
    let nextCheck = quotaCheckBytes
    return (bytes) => {
      total += bytes
      this.checkSize(total)
      if (path === undefined || total < nextCheck) return undefined
      nextCheck = total + quotaCheckBytes
      return this.checkQuota(path, total, this.maxBytes)
    }
  }
}

// Not per chunk: the check reads the catalog.
const quotaCheckBytes = 1_048_576

/** Stages arriving bytes, whose size the meter limits. `onChunk` is called before a chunk is written. */
export async function stage(
  chunks: AsyncIterable<Buffer>,
  draft: StagedBlob,
  { count, onChunk }: { count: SizeMeter; onChunk?: (chunk: Buffer) => void },
): Promise<void> {
  for await (const chunk of chunks) {
    const isChecked = count(chunk.length)
    if (isChecked) await isChecked
    onChunk?.(chunk)
    await draft.write(chunk)
  }
  await draft.seal()
}

/** What the routes of files, contents and trees use. */
export interface FileDependencies {
  store: BlobStore
  catalog: Catalog
  cache: ContentCache
  limits: UploadLimits
  maxBatchFiles: number
  /** Maximum files of a tree, and bytes of all of them. */
  trees: Config['trees']
  describe: DescribeFiles
  /** Called with each file after it was stored. */
  onStored: (row: FileRow) => void
}

interface StoredFiles {
  stored: DescribedFile[]
  wasNew: boolean
}

/** An arrived blob, and its target path. */
export interface Arrival {
  path: string
  draft: Pick<StagedBlob, 'head' | 'keep' | 'isReferenced'>
}

/** Makes a sealed blob durable. @returns the file that it becomes. */
export async function keepFile({ path, draft }: Arrival, uploadedBy: string): Promise<NewFile> {
  const name = nameOf(path)
  const contentType = typeByName(name) ?? (await contentTypeOf(name, draft.head))
  const blob = await draft.keep()
  return { ...blob, path, contentType, category: categoryOf(contentType), uploadedBy }
}

/** Also waits for the others where one fails: a blob that is kept after it was disposed of would stay leased. */
export async function keepFiles(arrivals: Arrival[], uploadedBy: string): Promise<NewFile[]> {
  const kept = await Promise.allSettled(arrivals.map((each) => keepFile(each, uploadedBy)))
  return kept.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  })
}

/**
 * Stores all files or none, under these conditions, by default those of the request. Bytes first, rows last: every
 * content is durable before any file is visible.
 * @throws {HttpError} `file_not_found` outside the caller's folders, or what `Catalog.put` throws.
 */
export async function storeFiles(
  request: FastifyRequest,
  arrivals: Arrival[],
  { catalog, describe, onStored }: Pick<FileDependencies, 'catalog' | 'describe' | 'onStored'>,
  conditions = conditionsOf(request.headers),
): Promise<StoredFiles> {
  const caller = await readmit(request)
  for (const { path } of arrivals) requirePath(caller, path)
  const files = await keepFiles(arrivals, caller.username)
  const actor = actorOf(request)
  const { rows, wasNew } = await catalog.writes.put({ files, conditions, actor })
  for (const { draft } of arrivals) draft.isReferenced = true
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
    .header('etag', file.etag())
    .send(file.record)
}

/** @throws {HttpError} `duplicate_path`. */
export function checkDistinct(paths: string[]): void {
  const seen = new Set<string>()
  for (const path of paths) {
    if (seen.has(path)) throw errors.duplicatePath(path)
    seen.add(path)
  }
}
