import type { CompressedCoding, ContentCoding } from './blob-path.ts'
import type { OpenBlob } from './blob-reader.ts'
import type { VerifiedContents } from './integrity.ts'
import type { ContentHash, StagedBlob } from './staged-blob.ts'

/**
 * Contents by their SHA-256 digest, each stored once, with their compressed forms. A content exists while a file refers
 * to it; no name that a client chose reaches the store.
 */
export interface BlobStore {
  readonly verified: VerifiedContents

  /** Whether small contents stay in memory until a file refers to them, or they are kept. */
  readonly holdsSmall: boolean

  /** A content that is going to arrive. */
  draft(): StagedBlob

  /**
   * A content that arrives in several requests, from where `saved` ends. `id` names it, and is a file name. One at a time
   * for each id.
   */
  resume(id: string, saved: SavedBlob, options: ResumeOptions): ResumableBlob

  /** Removes what was saved of a content; does nothing to one that a file refers to. */
  discard(id: string, saved: Pick<SavedBlob, 'state'>): Promise<void>

  /** A content, or one of its compressed forms, to read; undefined if it is not stored. */
  open(digest: string, coding?: ContentCoding): Promise<OpenBlob | undefined>

  /** The bytes of a content of up to 32 KiB; only where reading them needs no waiting. */
  readNow?(digest: string): Buffer | undefined

  /** The compressed forms of a content, in the order of `encodedForms`. */
  forms(digest: string): Promise<CompressedCoding[]>

  formSize(digest: string, coding: ContentCoding): Promise<number | undefined>

  /** Stores a compressed form, complete and durable; it is removed with its content. Does nothing once that is gone. */
  putForm(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void>

  dropForm(digest: string, coding: CompressedCoding): Promise<void>

  /**
   * Deletes the bytes of contents that no file refers to as soon as nothing reads them: free pages and logs of databases keep
   * none, and no grace is waited for. A backup that is running delays it.
   */
  erase(digests: string[]): Promise<void>

  /** What /health reports, by name: what was last seen, without waiting. */
  check(): Record<string, { status: 'ok' | 'degraded' | 'unavailable' }>

  /** Contents that are being read or stored. */
  readonly busy: number

  /** Contents that are arriving, in memory or in temporary files. */
  countDrafts(): Promise<number>

  /** For a check: what is stored of digests that begin with two hex digits, and unknown files. */
  list(prefix: string): Promise<StoredEntry[]>

  /** For a check: removes what was listed. */
  removeEntries(entries: StoredEntry[]): Promise<void>

  /** For a check: what of the store itself is damaged. */
  findFaults(): Promise<{ path: string; fault: string }[]>

  close(): Promise<void>
}

/** What is durable of a content that arrives in several requests: the store has the bytes, and this finds them. */
export interface SavedBlob {
  size: number
  /** For the store alone. */
  state: string | null
  /** The last bytes, where the store has not stored them. */
  tail: Buffer | null
}

export interface ResumeOptions {
  /** Has grown if the writer before may still be sending. */
  epoch: number
  /** Called when more bytes are durable while others are written: each `maxUnsavedBytes`, or each part of an object. */
  onSaved: (saved: Partial<SavedBlob>) => Promise<void>
}

export const maxUnsavedBytes = 8_388_608

/**
 * A content that arrives in several requests, across restarts and replicas. Disposing of it leaves what was saved. Its methods
 * throw what `onSaved` does, `BytesLost` where saved bytes are gone, and `insufficient_storage` when the disk is full.
 */
export interface ResumableBlob extends AsyncDisposable {
  write(chunk: Buffer): Promise<void>
  /** Makes all bytes durable. */
  save(): Promise<Partial<SavedBlob>>
  /**
   * The whole saved content, which is read again without its hash, as one that came in one request. What was saved stays, so
   * that it can be tried again.
   */
  stage(hash: ContentHash | undefined): Promise<StagedBlob>
}

/** A blob with its compressed forms, or one file of it, or an unknown file. */
export interface StoredEntry {
  /** Of the file, below the data directory, or of the row. */
  name: string
  /** Absent: an unknown file. */
  digest?: string
}
