import {
  type Postgres,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../blob-path.ts'
import type { StoredObject } from './object-reader.ts'

/** A stored blob or compressed form: its bytes, or the object that holds them. */
export type ContentRow = { bytes: Buffer } | StoredObject

/** Rows of blobs and of the objects in the bucket, outside of the catalog's transactions. */
export class ContentTable {
  readonly #postgres: Postgres
  readonly #graceSeconds: number

  constructor(postgres: Postgres, graceSeconds: number) {
    this.#postgres = postgres
    this.#graceSeconds = graceSeconds
  }

  /** The current row, or the row as of a snapshot. */
  async find(
    digest: string,
    coding: ContentCoding,
    at: Pick<SqlTransaction, 'get'> = this.#postgres,
  ): Promise<ContentRow | undefined> {
    const row = await at.get<StoredObject & { bytes: Buffer | null }>(
      sql`select size, bytes, object_key key, etag from static_service.contents where ${isForm(digest, coding)}`,
    )
    if (!row) return undefined
    const { bytes, etag, ...object } = row
    return bytes ? { bytes } : { ...object, etag: etag ?? undefined }
  }

  async sizes(digest: string): Promise<Map<ContentCoding, number>> {
    const rows = await this.#postgres.all<{ coding: number; size: number }>(
      sql`select coding, size from static_service.contents where digest = ${digest} order by coding`,
    )
    return new Map(rows.map(({ coding, size }) => [contentCodings[coding] ?? 'identity', size]))
  }

  /** The digests that begin with these two hex digits. */
  async digests(prefix: string): Promise<string[]> {
    const rows = await this.#postgres.all<{ digest: string }>(
      sql`select digest from static_service.contents
        where digest between ${prefix} and ${`${prefix}g`} and coding = 0`,
    )
    return rows.map(({ digest }) => digest)
  }

  /**
   * Stores a compressed form (bytes, or an uploaded object) if its blob is stored. Otherwise, or if the blob has that
   * form, the object stays an intent.
   */
  async addForm(
    digest: string,
    coding: ContentCoding,
    { size, ...form }: { size: number; bytes: Buffer } | StoredObject,
  ): Promise<void> {
    const { bytes, key, etag } = { bytes: null, key: null, etag: null, ...form }
    await this.#postgres.run(sql`with content as (
        select from static_service.contents where ${isForm(digest, 'identity')} for key share
      ), intent as (
        delete from static_service.intents where object_key = ${key} and exists (select from content)
          and not exists (select from static_service.contents where ${isForm(digest, coding)})
        returning object_key
      )
      insert into static_service.contents (digest, coding, size, bytes, object_key, etag)
        select ${digest}::text, ${numberOf(coding)}::smallint, ${size}::bigint, ${bytes}::bytea, ${key}::text, ${etag}::text
        from content where ${key}::text is null or exists (select from intent)
      on conflict do nothing`)
  }

  /** Turns unreferenced blobs into garbage. There are none, unless rows were changed by hand. */
  async removeUnreferenced(): Promise<void> {
    const isUnreferenced = sql`not exists (select from static_service.blobs where digest = contents.digest)`
    await this.#postgres.run(deleteContents(isUnreferenced, this.#graceSeconds))
  }

  async removeForm(digest: string, coding: ContentCoding): Promise<void> {
    await this.#postgres.run(deleteContents(isForm(digest, coding), this.#graceSeconds))
  }
}

/** Deletes the rows of these blobs; their objects become garbage, deleted after the grace. */
export const deleteContents = (condition: Statement, graceSeconds: number) =>
  toGarbage(
    sql`delete from static_service.contents where ${condition}
      returning object_key, null::text upload_id, digest`,
    graceSeconds,
  )

/** Turns these uncommitted objects into garbage, deleted after the grace. */
export const discardIntents = (condition: Statement, graceSeconds: number) =>
  toGarbage(
    sql`delete from static_service.intents where ${condition} returning object_key, upload_id, null::text digest`,
    graceSeconds,
  )

const toGarbage = (deletion: Statement, graceSeconds: number) =>
  sql`with gone as (${deletion})
   insert into static_service.garbage (object_key, upload_id, digest, due_at)
     select object_key, upload_id, digest, clock_timestamp() + make_interval(secs => ${graceSeconds}) from gone
     where object_key is not null`

const isForm = (digest: string, coding: ContentCoding) =>
  sql`digest = ${digest} and coding = ${numberOf(coding)}`

const numberOf = (coding: ContentCoding) => contentCodings.indexOf(coding)
