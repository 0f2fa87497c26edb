import { type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../../rfc9110/content-codings.ts'
import type { StoredObject } from './object-reader.ts'

/** An uploaded blob without a committed file: its bytes, or the object that holds them. */
type PendingContent = { digest: string; size: number } & (
  | { bytes: Uint8Array }
  | { key: string; etag: string | undefined }
)

/** The blobs' part of a catalog commit: their rows change in the transaction of the files' rows. */
export type ContentTransaction = Pick<ContentCommit, 'findMissing' | 'apply'>

/**
 * Blobs that wait for the commit of their files, and their part in the catalog's serialized transactions. The commit
 * takes an object from the garbage: without its row there, a sweep may have deleted it. It is there since the upload
 * began, or since an equal blob was freed, meanwhile.
 */
export class ContentCommit {
  /** Several uploads may have the same bytes. */
  readonly #pending = new Map<string, Set<PendingContent>>()
  readonly #graceSeconds: number

  constructor(graceSeconds: number) {
    this.#graceSeconds = graceSeconds
  }

  /** Adds a pending blob; the returned function removes it. */
  add(content: PendingContent): () => void {
    const { digest } = content
    const contents = this.#pending.getOrInsertComputed(digest, () => new Set()).add(content)
    return () => {
      contents.delete(content)
      if (contents.size === 0 && this.#pending.get(digest) === contents) this.#pending.delete(digest)
    }
  }

  /** The digests that are neither stored nor uploaded, until the transaction ends: locks the objects found. */
  async findMissing(transaction: SqlTransaction, digests: string[]): Promise<Set<string>> {
    // Bytes in memory need no look-up.
    const doubtful = digests.filter((digest) => !this.#of(digest).some(hasBytes))
    if (doubtful.length === 0) return new Set()
    const stored = await transaction.all<{ digest: string }>(
      sql`select digest from static_service.contents where digest = any(${doubtful}) and coding = 0`,
    )
    const present = new Set(stored.map(({ digest }) => digest))
    const live = await this.#findLive(transaction, doubtful)
    return new Set(doubtful.filter((digest) => !present.has(digest) && !live.has(digest)))
  }

  /**
   * Stores the blobs that got their first reference in this transaction; turns those that lost their last one into
   * garbage. The two lists are disjoint.
   */
  async apply(transaction: SqlTransaction, { added, freed }: { added: string[]; freed: string[] }): Promise<void> {
    if (added.length > 0) await this.#add(transaction, added)
    for (let at = 0; at < freed.length; at += batchSize) {
      await this.#free(transaction, freed.slice(at, at + batchSize))
    }
  }

  #of(digest: string): PendingContent[] {
    return [...(this.#pending.get(digest) ?? [])]
  }

  // A blob that is already stored keeps its row; its second object stays garbage.
  async #add(transaction: SqlTransaction, digests: string[]) {
    const live = await this.#findLive(transaction, digests)
    const contents = digests.map((digest) => {
      const content = this.#of(digest).find(hasBytes) ?? live.get(digest)
      if (!content) throw new Error(`the content ${digest} has no bytes`)
      return { bytes: undefined, key: null, etag: null, ...content }
    })
    const bytes = contents.map((content) => content.bytes && Buffer.from(content.bytes))
    await transaction.run(sql`with added as (
        insert into static_service.contents (digest, coding, size, bytes, object_key, etag)
        select digest, 0, size, bytes, key, etag
        from unnest(${digests}::text[], ${contents.map(({ size }) => size)}::bigint[], ${bytes}::bytea[],
          ${contents.map(({ key }) => key)}::text[], ${contents.map(({ etag }) => etag)}::text[])
          content (digest, size, bytes, key, etag)
        on conflict do nothing returning object_key
      )
      delete from static_service.garbage where object_key in (select object_key from added)`)
  }

  /** Locks and returns an uploaded object per digest. */
  async #findLive(transaction: SqlTransaction, digests: string[]) {
    const uploaded = digests.flatMap((digest) => this.#of(digest).filter(isUploaded))
    if (uploaded.length === 0) return new Map<string, (typeof uploaded)[number]>()
    const known = uploaded.map(({ key }) => key)
    const found = await transaction.all<{ object_key: string }>(
      sql`select object_key from static_service.garbage
        where object_key = any(${known}) and ${isUnclaimed} for update`,
    )
    const keys = new Set(found.map(({ object_key }) => object_key))
    return new Map(uploaded.filter(({ key }) => keys.has(key)).map((object) => [object.digest, object]))
  }

  // Two statements: the second sees compressed forms that were added while the first waited for its locks.
  async #free(transaction: SqlTransaction, digests: string[]) {
    await transaction.run(
      sql`select from static_service.contents where digest = any(${digests}) and coding = 0 for update`,
    )
    await transaction.run(deleteContents(sql`digest = any(${digests})`, this.#graceSeconds))
  }
}

const hasBytes = (content: PendingContent) => 'bytes' in content
const isUploaded = (content: PendingContent) => 'key' in content

const batchSize = 1000

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
