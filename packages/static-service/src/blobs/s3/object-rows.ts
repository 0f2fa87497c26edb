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

/**
 * Tables of blobs and of the objects in the bucket. Part of the schema `static_service`, whose migrations are one list.
 * An object's key is in `garbage` before its upload begins, in `contents` while a file refers to it, and in `garbage`
 * again until it is deleted: at any moment in exactly one of them.
 */
export const contentMigrations = [
  `create table static_service.contents (
     digest text collate "C" not null,
     coding smallint not null, -- an index of contentCodings
     size bigint not null,
     bytes bytea, -- up to 32 KiB
     object_key text collate "C", -- larger ones
     etag text,
     primary key (digest, coding),
     check ((bytes is null) <> (object_key is null))
   );
   -- Small contents are mostly compressed already.
   alter table static_service.contents alter column bytes set storage external;
   create unique index contents_by_object on static_service.contents (object_key) where object_key is not null;

   -- Objects that no content refers to: to be deleted when they are due, unless a commit takes them before.
   create table static_service.garbage (
     object_key text collate "C" primary key,
     upload_id text, -- of a multipart upload
     due_at timestamptz not null,
     digest text collate "C" -- of a content that was freed
   );
   create index garbage_by_due on static_service.garbage (due_at);

   -- Nothing is deleted from the bucket while a backup runs.
   create table static_service.backups (
     id text primary key,
     expires_at timestamptz not null
   )`,
]
