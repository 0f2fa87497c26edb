import { type Postgres, type Statement, sql } from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../blob-path.ts'
import type { StoredObject } from './object-reader.ts'

/** A stored content or compressed form: its bytes, or the object that holds them. */
export type ContentRow = { bytes: Buffer } | StoredObject

interface Row {
  size: number
  bytes: Buffer | null
  object_key: string | null
  etag: string | null
}

/** The rows of contents and of the objects of the bucket, outside of the catalog's transactions. */
export class ContentTable {
  readonly #postgres: Postgres
  readonly #graceSeconds: number

  constructor(postgres: Postgres, graceSeconds: number) {
    this.#postgres = postgres
    this.#graceSeconds = graceSeconds
  }

  /** As it is now, or as of a snapshot. */
  async find(
    digest: string,
    coding: ContentCoding,
    at: Pick<Postgres, 'query'> = this.#postgres,
  ): Promise<ContentRow | undefined> {
    const [row] = await at.query<Row>(
      'select size, bytes, object_key, etag from static_service.contents where digest = $1 and coding = $2',
      [digest, numberOf(coding)],
    )
    if (!row) return undefined
    if (row.bytes) return { bytes: row.bytes }
    return { key: row.object_key ?? '', size: row.size, etag: row.etag ?? undefined }
  }

  async sizes(digest: string): Promise<Map<ContentCoding, number>> {
    const rows = await this.#postgres.query<{ coding: number; size: number }>(
      'select coding, size from static_service.contents where digest = $1 order by coding',
      [digest],
    )
    return new Map(rows.map(({ coding, size }) => [contentCodings[coding] ?? 'identity', size]))
  }

  /** The digests that begin with two hex digits. */
  async digests(prefix: string): Promise<string[]> {
    const rows = await this.#postgres.query<{ digest: string }>(
      'select digest from static_service.contents where digest between $1 and $2 and coding = 0',
      [prefix, `${prefix}g`],
    )
    return rows.map(({ digest }) => digest)
  }

  /** Stores a small compressed form, while its content is stored. */
  async addFormBytes(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void> {
    await this.#postgres.query(
      `with content as (
         select 1 from static_service.contents where digest = $1 and coding = 0 for key share
       )
       insert into static_service.contents (digest, coding, size, bytes)
         select $1, $2, $3, $4 from content on conflict do nothing`,
      [digest, numberOf(coding), bytes.length, bytes],
    )
  }

  /** Turns an uploaded object into a compressed form. It stays an intent if its content is gone or has that form. */
  async addFormObject(digest: string, coding: ContentCoding, object: StoredObject): Promise<void> {
    await this.#postgres.transaction(async (transaction) => {
      await transaction.query(
        `with content as (
           select 1 from static_service.contents where digest = $1 and coding = 0 for key share
         ), intent as (
           delete from static_service.intents where object_key = $4 and exists (select from content)
             and not exists (select from static_service.contents where digest = $1 and coding = $2)
           returning object_key
         )
         insert into static_service.contents (digest, coding, size, object_key, etag)
           select $1, $2, $3, object_key, $5 from intent`,
        [digest, numberOf(coding), object.size, object.key, object.etag ?? null],
      )
    })
  }

  /** Turns contents that no file refers to into garbage. There are none, unless rows were changed by hand. */
  async removeUnreferenced(): Promise<void> {
    const isUnreferenced = sql`not exists (select from static_service.blobs where digest = contents.digest)`
    await this.#postgres.run(deleteContents(isUnreferenced, this.#graceSeconds))
  }

  async removeForm(digest: string, coding: ContentCoding): Promise<void> {
    const isForm = sql`digest = ${digest} and coding = ${numberOf(coding)}`
    await this.#postgres.run(deleteContents(isForm, this.#graceSeconds))
  }
}

/** Deletes these contents; their objects are garbage from now on, deleted after the grace. */
export const deleteContents = (condition: Statement, graceSeconds: number) =>
  toGarbage(
    sql`delete from static_service.contents where ${condition}
      returning object_key, null::text upload_id, digest`,
    graceSeconds,
  )

/** Turns these objects, which were not committed, into garbage, deleted after the grace. */
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

const numberOf = (coding: ContentCoding) => contentCodings.indexOf(coding)
