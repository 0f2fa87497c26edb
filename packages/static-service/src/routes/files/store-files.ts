import type { IncomingHttpHeaders } from 'node:http'
import { readmit } from '@domains-and-files/auth'
import { type App, readIfMatch, readIfNoneMatch, refuseContentCoding } from '@domains-and-files/http'
import { allEnded, DatabaseUnavailableError } from '@domains-and-files/persistence'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { StagedBlob } from '../../blobs/staging-file.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { type Conditions, etagOf, holds, mustBeNew } from '../../catalog/changes/file-changes.ts'
import type { FileRow, NewFile } from '../../catalog/tables.ts'
import type { Config } from '../../config.ts'
import * as errors from '../../errors.ts'
import { encodePath, nameOf, urlOf } from '../../files/file-path.ts'
import { categoryOf, contentTypeOf, typeByName } from '../../files/media-type.ts'
import { readHttpDate } from '../../rfc9110/conditional-requests.ts'
import type { ContentCache } from '../../serving/content-cache.ts'
import type { AccessRules } from '../../sharing/access-rules.ts'
import { actorOf, requirePath } from '../callers.ts'
import type { FileRecord } from '../schemas.ts'

/** Preconditions of a request on the stored file (RFC 9110, 13.1). A malformed date is ignored (13.1.4). */
export function conditionsOf(headers: IncomingHttpHeaders): Conditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, 'if-unmodified-since': since } = headers
  return {
    ifMatch: ifMatch === undefined ? undefined : readIfMatch(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : readIfNoneMatch(ifNoneMatch),
    ifUnmodifiedSince: since === undefined ? undefined : readHttpDate(since),
  }
}

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

/** The schema of a body that its handler reads. */
export const rawBody = (example: string) => z.any().meta({ type: 'string', format: 'binary', examples: [example] })

/**
 * Refuses uploads as early as their end is certain: by Content-Length, by what is stored at the path, or as soon as a
 * limit is passed. The transaction that enters the file decides in the end.
 */
export class UploadLimits {
  readonly maxBytes: number
  readonly #catalog: Catalog
  readonly #quotaBytes: number

  /** `maxBytes`: of one file; `quotaBytes`: of all distinct blobs. */
  constructor(catalog: Catalog, maxBytes: number, quotaBytes = Number.POSITIVE_INFINITY) {
    this.#catalog = catalog
    this.maxBytes = maxBytes
    this.#quotaBytes = quotaBytes
  }

  /** @throws {HttpError} `file_too_large` or `quota_exceeded` for a file of this size or more, whatever is stored. */
  checkSize(bytes: number): void {
    if (bytes > this.maxBytes) throw errors.fileTooLarge(this.maxBytes)
    const quota = this.#quotaBytes
    // Over a quota that was lowered, the file may replace a larger one.
    if (bytes > quota && bytes > (this.#catalog.status().totals?.storedSize ?? 0)) throw errors.quotaExceeded(quota)
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
    const { storedSize, hasSize, freed } = await this.#catalog.readQuota(path, { minBytes, maxBytes })
    if (storedSize + minBytes <= quota) return
    // The file may equal a stored blob, which takes no room, or replace one.
    if (!hasSize && storedSize - freed + minBytes > Math.max(quota, storedSize)) throw errors.quotaExceeded(quota)
  }

  /** `checkSize` and `checkQuota` of the body that these headers announce. */
  async checkLength(path: string, { 'content-length': length }: IncomingHttpHeaders): Promise<void> {
    if (length === undefined) return
    this.checkSize(Number(length))
    await this.checkQuota(path, Number(length))
  }
}

// Not per chunk: the check reads the catalog.
const quotaCheckBytes = 1_048_576

/**
 * Stages the arriving bytes of one file; the path is undefined while it is unknown. `onChunk`: called before each chunk
 * is staged.
 * @throws {HttpError} `file_too_large` or `quota_exceeded` as soon as it is certain.
 */
export async function stage(
  chunks: AsyncIterable<Buffer>,
  draft: StagedBlob,
  {
    limits,
    path,
    onChunk,
  }: { limits: UploadLimits; path: string | undefined; onChunk?: ((chunk: Buffer) => void) | undefined },
): Promise<void> {
  for await (const chunk of chunks) {
    const size = draft.size + chunk.length
    limits.checkSize(size)
    const isCheckDue = Math.floor(size / quotaCheckBytes) > Math.floor(draft.size / quotaCheckBytes)
    if (path !== undefined && isCheckDue) await limits.checkQuota(path, size, limits.maxBytes)
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
  describe: ReturnType<typeof fileDescriber>
  /** Called with each file after it was stored. */
  onStored: (row: FileRow) => void
}

/** Their URLs are absolute with a base. */
export const fileDescriber =
  (rules: AccessRules, base?: string) =>
  async (rows: FileRow[]): Promise<z.infer<typeof FileRecord>[]> => {
    // The file is already stored, so a failed refresh is no error: uses the last known rules.
    await rules.refresh().catch((error) => {
      if (!(error instanceof DatabaseUnavailableError)) throw error
    })
    return rows.map((row) => ({
      path: row.path,
      name: nameOf(row.path),
      category: row.category,
      content_type: row.contentType,
      size: row.size,
      sha256: row.digest,
      url: urlOf(row.path, base),
      public: rules.isPublic(row.path),
      uploaded_by: row.uploadedBy,
      created_at: row.createdAt,
      updated_at: row.updatedAt,
    }))
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

/** As `keepFile`. Also waits for the others where one fails: a blob that is kept after it was disposed of would stay leased. */
export const keepFiles = (arrivals: Arrival[], uploadedBy: string): Promise<NewFile[]> =>
  allEnded(arrivals.map((each) => keepFile(each, uploadedBy)))

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
) {
  const caller = await readmit(request)
  for (const { path } of arrivals) requirePath(caller, path)
  const files = await keepFiles(arrivals, caller.username)
  const actor = actorOf(request)
  const { rows, wasNew } = await catalog.writes.put({ files, conditions, actor })
  for (const { draft } of arrivals) draft.isReferenced = true
  for (const row of rows) onStored(row)
  return { rows, records: await describe(rows), wasNew }
}

type StoredFiles = Awaited<ReturnType<typeof storeFiles>>

/** The record of one stored file, and its entity tag. */
export function onlyFile({ rows: [row], records: [record] }: Omit<StoredFiles, 'wasNew'>) {
  if (!row || !record) throw new Error('the catalog returned no row')
  return { record, etag: etagOf(row, record.public) }
}

/** Answers the upload of one file. */
export function sendStored(reply: FastifyReply, stored: StoredFiles) {
  const { record, etag } = onlyFile(stored)
  return reply
    .code(stored.wasNew ? 201 : 200)
    .headers({ location: `/api/files/${encodePath(record.path)}`, etag })
    .send(record)
}

/** @throws {HttpError} `duplicate_path`. */
export function checkDistinct(paths: string[]): void {
  const seen = new Set<string>()
  const repeated = paths.find((path) => seen.size === seen.add(path).size)
  if (repeated !== undefined) throw errors.duplicatePath(repeated)
}
