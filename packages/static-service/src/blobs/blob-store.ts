import type { OpenBlob } from '@domains-and-files/persistence'
import type { CompressedCoding, ContentCoding } from '../rfc9110/content-codings.ts'
import type { StagedBlob, StagingMemory } from './staging-file.ts'
import type { ContentHash, VerifiedContents } from './stored-blob.ts'

/**
 * Blobs by SHA-256 digest, each stored once, with their compressed forms. A blob exists while a file refers to it.
 * Paths chosen by clients never reach the store.
 */
export interface BlobStore {
  readonly verified: VerifiedContents

  /** Holds what arrives. */
  readonly memory: StagingMemory

  /** Whether small blobs stay in memory until a file refers to them, or they are kept. */
  readonly holdsSmall: boolean

  draft(): StagedBlob

  /** Resumes a blob where `saved` ends. `id` must be a valid file name; use one writer at a time per id. */
  resume(id: string, saved: SavedBlob, onSaved: OnSaved): ResumableBlob

  /** Removes the saved bytes of an upload; keeps the blob if a file refers to it. */
  discard(id: string, saved: Pick<SavedBlob, 'state'>): Promise<void>

  /** Opens a blob, or one of its compressed forms; undefined if it is not stored. */
  open(digest: string, coding?: ContentCoding): Promise<OpenBlob | undefined>

  /** Reads a blob of up to 32 KiB synchronously; absent where the store cannot. */
  readNow?(digest: string): Buffer | undefined

  /** In the order of `compressedCodings`. */
  forms(digest: string): Promise<CompressedCoding[]>

  formSize(digest: string, coding: ContentCoding): Promise<number | undefined>

  /** Stores a compressed form atomically and durably; it is removed with its blob. Does nothing if the blob is gone. */
  putForm(digest: string, coding: ContentCoding, bytes: Buffer): Promise<void>

  dropForm(digest: string, coding: CompressedCoding): Promise<void>

  /**
   * Erases unreferenced blobs as soon as nothing reads them, without the usual grace, and from the free pages and logs
   * of databases as well. A running backup delays it.
   */
  erase(digests: string[]): Promise<void>

  /** The checks of /health by name: the last known status, without waiting. */
  check(): Record<string, { status: 'ok' | 'degraded' | 'unavailable' }>

  /**
   * For a check: stored blobs whose digests begin with one of `digestPrefixes`. Absent where a blob is stored in the
   * transaction of its first file, and removed in that of its last.
   */
  digests?(prefix: string): Promise<string[]>

  /** Removes blobs that no file refers to. */
  removeOrphans?(digests: string[]): Promise<void>

  close(): Promise<void>
}

/** The durable part of a blob that arrives in several requests: its size, and where the store has its bytes. */
export interface SavedBlob {
  size: number
  /** For the store alone. */
  state: string | null
  /** The last bytes, if the store does not have them yet. */
  tail: Buffer | null
  /** Counts writers that may still be sending, and losses of the bytes. */
  epoch: number
}

/** Called during writes when more bytes are durable: after `maxUnsavedBytes`, or after each part of an object. */
export type OnSaved = (saved: Partial<SavedBlob>) => Promise<void>

export const maxUnsavedBytes = 8_388_608

/**
 * A blob that arrives in several requests, across restarts and replicas. Disposing of it keeps the saved bytes. Its methods
 * throw what `onSaved` throws, `BytesLost` if saved bytes are gone, and `insufficient_storage` when the disk is full.
 */
export interface ResumableBlob extends AsyncDisposable {
  /** Takes over the chunk, as a staged blob does. */
  write(chunk: Buffer): Promise<void>
  save(): Promise<Partial<SavedBlob>>
  /**
   * Turns the saved bytes into a staged blob, as if they had come in one request. Reads them again if `hash` is
   * undefined. They stay saved, so that the call can be repeated.
   */
  stage(hash: ContentHash | undefined): Promise<StagedBlob>
}

/** What digests begin with, in hex: a store of so many files is compared with its catalog in parts. */
export function digestPrefixes(files: number): string[] {
  const digits = files < 10_000 ? 1 : 2
  return Array.from({ length: 16 ** digits }, (_, at) => at.toString(16).padStart(digits, '0'))
}
