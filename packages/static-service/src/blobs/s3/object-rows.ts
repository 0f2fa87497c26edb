import { type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../blob-path.ts'
import type { StoredObject } from './object-reader.ts'

export const isForm = (digest: string, coding: ContentCoding) =>
  sql`digest = ${digest} and coding = ${contentCodings.indexOf(coding)}`

/** A stored blob or compressed form: its bytes, or the object that holds them. */
export async function findRow(
  at: Pick<SqlTransaction, 'get'>,
  digest: string,
  coding: ContentCoding,
): Promise<{ bytes: Buffer } | StoredObject | undefined> {
  const row = await at.get<StoredObject & { bytes: Buffer | null }>(
    sql`select size, bytes, object_key key, etag from static_service.contents where ${isForm(digest, coding)}`,
  )
  if (!row) return undefined
  const { bytes, etag, ...object } = row
  return bytes ? { bytes } : { ...object, etag: etag ?? undefined }
}

/** Deletes the rows of these blobs; their objects become garbage, deleted after the grace. */
export const deleteContents = (condition: Statement, graceSeconds: number) =>
  sql`with gone as (delete from static_service.contents where ${condition} returning object_key, digest)
   insert into static_service.garbage (object_key, digest, due_at)
     select object_key, digest, ${dueIn(graceSeconds)} from gone where object_key is not null`

/** Of garbage: a commit may take it. A sweep claims objects by postponing them by five minutes. */
export const isUnclaimed = sql`due_at > clock_timestamp() + interval '6 minutes'`

export const dueIn = (seconds: number) => sql`clock_timestamp() + make_interval(secs => ${seconds})`
