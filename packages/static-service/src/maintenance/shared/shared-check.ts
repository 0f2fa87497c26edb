import { hash } from 'node:crypto'
import { HttpError } from '@domains-and-files/http'
import { type Postgres, type Progress, unreadable } from '@domains-and-files/persistence'
import { type CompressedCoding, contentCodings } from '../../blobs/blob-path.ts'
import { type OpenBlob, openBytes } from '../../blobs/blob-reader.ts'
import { hashBytes } from '../../blobs/hashing.ts'
import { hashBlob } from '../../blobs/integrity.ts'
import type { Bucket } from '../../blobs/s3/bucket.ts'
import { ObjectReader } from '../../blobs/s3/object-reader.ts'
import { findMiscounts } from '../../catalog/find-miscounts.ts'
import type { CheckOptions, Report } from '../check.ts'
import { explain, openSharedData, type SharedData } from './shared-data.ts'

interface ContentRow {
  digest: string
  coding: number
  size: number
  /** Of the content, whichever form this is. */
  content_size: number
  bytes: Buffer | null
  object_key: string | null
  etag: string | null
}

interface Work {
  data: SharedData
  report: Report
  repair: boolean
  progress: Progress | undefined
}

/**
 * As `check`, of what is in PostgreSQL and S3: every stored byte is compared with its digest, every row with its content,
 * and every count with what it counts. Replicas may be running. Objects that no row knows cannot be found: the bucket is
 * never listed.
 */
export async function checkShared(
  env: NodeJS.ProcessEnv,
  { repair = false, progress }: CheckOptions = {},
): Promise<Report> {
  await using data = await openSharedData(env)
  const { postgres } = data
  const report: Report = { files: 0, contents: 0, bytes: 0, damages: [], orphans: [] }
  const work: Work = { data, report, repair, progress }
  const [counts] = await postgres.query<{ files: number; count: number; bytes: number }>(
    `select (select count(*) from static_service.files) files, count(*), coalesce(sum(size), 0) bytes
     from static_service.blobs`,
  )
  report.files = counts?.files ?? 0
  progress?.begin('checked', { count: counts?.count ?? 0, bytes: counts?.bytes ?? 0 })
  report.damages.push(...(await findMiscounts(postgres)))
  await explain(checkContents(work))
  await findOrphans(work)
  return report
}

async function checkContents(work: Work) {
  for await (const row of readContents(work.data.postgres)) await checkRow(work, row)
}

async function checkRow(work: Work, row: ContentRow) {
  const { data, report, progress } = work
  const coding = contentCodings[row.coding] ?? 'identity'
  if (coding !== 'identity') return checkForm(work, row, coding)
  const fault = await findFault(data.bucket, row)
  report.contents += 1
  report.bytes += row.size
  progress?.content(row)
  if (fault && (await isStored(data.postgres, row))) {
    const paths = await pathsOf(data.postgres, row.digest)
    report.damages.push(...paths.map((path) => ({ path, fault })))
  }
}

async function checkForm(
  { data, report, repair }: Work,
  row: ContentRow,
  coding: CompressedCoding,
) {
  await using blob = openRow(data.bucket, row)
  const bytes = await blob.read(0, blob.size).catch((error) => {
    if (error instanceof HttpError) throw error // The store does not answer.
  })
  const isSound = bytes && (await hashBytes(bytes, coding, row.content_size)) === row.digest
  if (isSound || !(await isStored(data.postgres, row))) return
  if (repair) return data.table.removeForm(row.digest, coding)
  const paths = await pathsOf(data.postgres, row.digest)
  report.damages.push(...paths.map((path) => ({ path, fault: `its ${coding} form is damaged` })))
}

async function findFault(bucket: Bucket, row: ContentRow): Promise<string | undefined> {
  try {
    await using blob = openRow(bucket, row)
    if (blob.size !== row.size) return `its content has ${blob.size} bytes instead of ${row.size}`
    blob.expect?.(0, blob.size)
    const digest = row.bytes ? hash('sha256', row.bytes) : await hashBlob(blob)
    return digest === row.digest ? undefined : 'its content has been altered'
  } catch (error) {
    if (error instanceof HttpError) throw error
    return `its content ${unreadable(error)}`
  }
}

function openRow(bucket: Bucket, { bytes, object_key, size, etag }: ContentRow): OpenBlob {
  if (bytes) return openBytes(bytes)
  const object = { key: object_key ?? '', size, etag: etag ?? undefined }
  return new ObjectReader(bucket, object, () => undefined)
}

/** Rows one after the other, not in one snapshot: a store is read for hours. */
async function* readContents(postgres: Postgres): AsyncGenerator<ContentRow> {
  let [digest, coding] = ['', 0]
  for (;;) {
    const rows = await postgres.query<ContentRow>(
      `select f.digest, f.coding, f.size, c.size content_size, f.bytes, f.object_key, f.etag
       from static_service.contents f
         join static_service.contents c on c.digest = f.digest and c.coding = 0
       where (f.digest, f.coding) > ($1, $2) order by f.digest, f.coding limit 64`,
      [digest, coding],
    )
    yield* rows
    const last = rows.at(-1)
    if (!last) return
    digest = last.digest
    coding = last.coding
  }
}

async function findOrphans({ data, report, repair }: Work) {
  const orphans = await data.postgres.query<{ digest: string }>(
    `select digest from static_service.contents c where coding = 0
       and not exists (select from static_service.blobs where digest = c.digest)`,
  )
  report.orphans.push(...orphans.map(({ digest }) => `contents/${digest}`))
  if (repair) await data.table.removeUnreferenced()
  const missing = await data.postgres.query<{ path: string }>(
    `select path from static_service.files f where not exists (
       select from static_service.contents where digest = f.digest and coding = 0)`,
  )
  report.damages.push(...missing.map(({ path }) => ({ path, fault: 'its content is missing' })))
}

// A replica may have deleted it since its row was read.
async function isStored(postgres: Postgres, { digest, coding, object_key }: ContentRow) {
  const found = await postgres.query(
    `select 1 from static_service.contents
     where digest = $1 and coding = $2 and object_key is not distinct from $3`,
    [digest, coding, object_key],
  )
  return found.length > 0
}

async function pathsOf(postgres: Postgres, digest: string): Promise<string[]> {
  const rows = await postgres.query<{ path: string }>(
    'select path from static_service.files where digest = $1 order by path',
    [digest],
  )
  return rows.map(({ path }) => path)
}
