import type { Transaction } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../content-transaction.ts'
import { deleteContents } from './content-table.ts'

/** A content that has arrived and that no committed file refers to yet: its bytes, or the object that holds them. */
export type PendingContent = { digest: string; size: number } & (
  | { bytes: Uint8Array }
  | { key: string; etag: string | undefined }
)

/** Contents that wait for the commit of the files that refer to them. The same content may have arrived several times. */
export class PendingContents {
  readonly #byDigest = new Map<string, Set<PendingContent>>()

  /** It waits until the returned function is called. */
  add(content: PendingContent): () => void {
    const known = this.#byDigest.get(content.digest)
    const contents = known ?? new Set()
    contents.add(content)
    if (!known) this.#byDigest.set(content.digest, contents)
    return () => {
      contents.delete(content)
      if (contents.size === 0 && this.#byDigest.get(content.digest) === contents) {
        this.#byDigest.delete(content.digest)
      }
    }
  }

  of(digest: string): PendingContent[] {
    return [...(this.#byDigest.get(digest) ?? [])]
  }

  get count(): number {
    return this.#byDigest.size
  }
}

/**
 * Contents in the catalog's transactions, which are serialized. An object is committed only if its intent still exists:
 * otherwise it may have been deleted as the remains of a dead upload.
 */
export class ContentCommit implements ContentTransaction<Transaction> {
  readonly #pending: PendingContents
  readonly #graceSeconds: number

  constructor(pending: PendingContents, graceSeconds: number) {
    this.#pending = pending
    this.#graceSeconds = graceSeconds
  }

  async findMissing(transaction: Transaction, digests: string[]): Promise<Set<string>> {
    // Bytes in memory need no look-up.
    const doubtful = digests.filter((digest) => !this.#pending.of(digest).some(hasBytes))
    if (doubtful.length === 0) return new Set()
    const stored = await transaction.query<{ digest: string }>(
      'select digest from static_service.contents where digest = any($1) and coding = 0',
      [doubtful],
    )
    const present = new Set(stored.map(({ digest }) => digest))
    const live = await this.#findLive(transaction, doubtful)
    return new Set(doubtful.filter((digest) => !present.has(digest) && !live.has(digest)))
  }

  async apply(
    transaction: Transaction,
    { added, freed }: { added: string[]; freed: string[] },
  ): Promise<void> {
    const uncommitted = await this.#addBytes(transaction, added)
    await this.#addObjects(transaction, uncommitted)
    for (let at = 0; at < freed.length; at += batchSize) {
      await this.#free(transaction, freed.slice(at, at + batchSize))
    }
  }

  /** Returns the digests whose bytes are not in memory. */
  async #addBytes(transaction: Transaction, digests: string[]): Promise<string[]> {
    const contents = digests.flatMap((digest) => this.#pending.of(digest).find(hasBytes) ?? [])
    if (contents.length === 0) return digests
    await transaction.query(
      `insert into static_service.contents (digest, coding, size, bytes)
         select digest, 0, length(bytes), bytes from unnest($1::text[], $2::bytea[]) n (digest, bytes)
       on conflict do nothing`,
      [contents.map(({ digest }) => digest), contents.map(({ bytes }) => Buffer.from(bytes))],
    )
    const done = new Set(contents.map(({ digest }) => digest))
    return digests.filter((digest) => !done.has(digest))
  }

  async #addObjects(transaction: Transaction, digests: string[]) {
    if (digests.length === 0) return
    const live = await this.#findLive(transaction, digests)
    const objects = digests.map((digest) => {
      const object = live.get(digest)
      if (!object) throw new Error(`the content ${digest} has no bytes`)
      return object
    })
    await transaction.query('delete from static_service.intents where object_key = any($1)', [
      objects.map(({ key }) => key),
    ])
    await transaction.query(
      `insert into static_service.contents (digest, coding, size, object_key, etag)
         select digest, 0, size, key, etag
         from unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) n (digest, size, key, etag)`,
      [
        objects.map(({ digest }) => digest),
        objects.map(({ size }) => size),
        objects.map(({ key }) => key),
        objects.map(({ etag }) => etag ?? null),
      ],
    )
  }

  /** One uploaded object of each digest, whose intent is locked. */
  async #findLive(
    transaction: Transaction,
    digests: string[],
  ): Promise<Map<string, UploadedObject>> {
    const uploaded = digests.flatMap((digest) => this.#pending.of(digest).filter(isUploaded))
    if (uploaded.length === 0) return new Map()
    const intents = await transaction.query<{ object_key: string }>(
      'select object_key from static_service.intents where object_key = any($1) for update',
      [uploaded.map(({ key }) => key)],
    )
    const keys = new Set(intents.map(({ object_key }) => object_key))
    return new Map(
      uploaded.filter(({ key }) => keys.has(key)).map((object) => [object.digest, object]),
    )
  }

  // Two statements: the second sees the compressed forms that were added while the first waited for its locks.
  async #free(transaction: Transaction, digests: string[]) {
    await transaction.query(
      'select from static_service.contents where digest = any($1) and coding = 0 for update',
      [digests],
    )
    await transaction.query(deleteContents('digest = any($2)'), [this.#graceSeconds, digests])
  }
}

type PendingBytes = Extract<PendingContent, { bytes: Uint8Array }>
type UploadedObject = Extract<PendingContent, { key: string }>

const hasBytes = (content: PendingContent): content is PendingBytes => 'bytes' in content
const isUploaded = (content: PendingContent): content is UploadedObject => 'key' in content

const batchSize = 1000
