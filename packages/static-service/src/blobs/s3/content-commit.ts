import { type SqlTransaction, sql } from '@domains-and-files/persistence'
import { deleteContents, isUnclaimed } from './object-rows.ts'

/** An uploaded blob without a committed file: its bytes, or the object that holds them. */
export type PendingContent = { digest: string; size: number } & (
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
    const contents = this.#pending.get(digest) ?? new Set()
    this.#pending.set(digest, contents.add(content))
    return () => {
      contents.delete(content)
      if (contents.size === 0 && this.#pending.get(digest) === contents)
        this.#pending.delete(digest)
    }
  }

  get count(): number {
    return this.#pending.size
  }

  /**
   * Returns the digests that are neither stored nor uploaded. Locks the objects that it finds, so that the result holds
   * until the transaction ends.
   */
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
  async apply(
    transaction: SqlTransaction,
    { added, freed }: { added: string[]; freed: string[] },
  ): Promise<void> {
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
  async #findLive(
    transaction: SqlTransaction,
    digests: string[],
  ): Promise<Map<string, UploadedObject>> {
    const uploaded = digests.flatMap((digest) => this.#of(digest).filter(isUploaded))
    if (uploaded.length === 0) return new Map()
    const known = uploaded.map(({ key }) => key)
    const found = await transaction.all<{ object_key: string }>(
      sql`select object_key from static_service.garbage
        where object_key = any(${known}) and ${isUnclaimed} for update`,
    )
    const keys = new Set(found.map(({ object_key }) => object_key))
    return new Map(
      uploaded.filter(({ key }) => keys.has(key)).map((object) => [object.digest, object]),
    )
  }

  // Two statements: the second sees compressed forms that were added while the first waited for its locks.
  async #free(transaction: SqlTransaction, digests: string[]) {
    await transaction.run(
      sql`select from static_service.contents where digest = any(${digests}) and coding = 0 for update`,
    )
    await transaction.run(deleteContents(sql`digest = any(${digests})`, this.#graceSeconds))
  }
}

type PendingBytes = Extract<PendingContent, { bytes: Uint8Array }>
type UploadedObject = Extract<PendingContent, { key: string }>

const hasBytes = (content: PendingContent): content is PendingBytes => 'bytes' in content
const isUploaded = (content: PendingContent): content is UploadedObject => 'key' in content

const batchSize = 1000
