import type { StoredBlob } from '../../blobs/integrity.ts'
import { parentOf } from '../../files/file-path.ts'
import type { BlobReferences, DirectoryCounts, FileRow, StoredFile } from '../tables.ts'
import {
  type ChangeCause,
  type ChangeDates,
  type ChangeEntry,
  dateFor,
  entryOf,
  type RowChange,
} from './change-entry.ts'

/** Counters of the catalog. */
export interface CatalogCounts {
  /** Bytes of the distinct blobs of files. */
  storedSize: number
  /** Bytes of the blobs that only past files have. */
  pastSize: number
  /** The last number that a file has. */
  lastId: number
  /** Counts every transaction that changed files, slices too. */
  lastChange: number
}

/** Rows of a transaction. */
interface LoadedRows {
  counts: CatalogCounts
  /** Every path that is looked up as a file or a directory, whether it exists or not. */
  paths: Set<string>
  /** Every digest that files get. */
  digests: Set<string>
  /** Digests without bytes: files cannot get them. */
  missing?: Set<string> | undefined
  files: StoredFile[]
  /** Directories among the paths. */
  directories: DirectoryCounts[]
  /** References of the digests, and of the blobs of the files. */
  blobs: BlobReferences[]
  /** Rows made by this change or an earlier one are kept when they end. */
  keptUpTo: number
  /** The dates that files get. */
  dates: ChangeDates
  /** Maximum bytes of the distinct blobs of files. */
  quota?: number | undefined
  /** The number of the change that this is a slice of. */
  recordedAs?: number | undefined
}

/** The effect of one change on files. */
export interface FileChange {
  entry: ChangeEntry
  files: RowChange<StoredFile>[]
  /** Rows that it ended, of those that are kept. */
  past: StoredFile[]
  /** The change that made the oldest row that it ended without keeping it; its own number: there is none. */
  firstLost: number
}

/** Rows by key. Changes since the last `accept` can be undone. */
export class TrackedRows<Row extends object> {
  readonly #rows = new Map<string, Row | undefined>()
  /** Rows that were set, as they were loaded. */
  readonly #loaded = new Map<string, Row | undefined>()
  /** Rows that were set since the last `accept`, as they were then. */
  readonly #accepted = new Map<string, Row | undefined>()

  /** `keys`: all keys that may be used; `rows`: the existing rows. */
  constructor(keys: Iterable<string>, rows: Row[], keyOf: (row: Row) => string) {
    for (const key of keys) this.#rows.set(key, undefined)
    for (const row of rows) this.#rows.set(keyOf(row), row)
  }

  get(key: string): Row | undefined {
    const row = this.#rows.get(key)
    if (row === undefined && !this.#rows.has(key)) {
      throw new Error(`the row of ${key} was not loaded`)
    }
    return row
  }

  set(key: string, row: Row | undefined): void {
    const before = this.get(key)
    for (const known of [this.#loaded, this.#accepted]) if (!known.has(key)) known.set(key, before)
    this.#rows.set(key, row)
  }

  /** The net changes since the rows were loaded. */
  changes(since = this.#loaded): RowChange<Row>[] {
    return [...since]
      .map(([key, before]) => ({ key, before, after: this.#rows.get(key) }))
      .filter(({ before, after }) => before !== after)
  }

  /** Makes the changes since the last `accept` permanent, and returns them. */
  accept(): RowChange<Row>[] {
    const changes = this.changes(this.#accepted)
    this.#accepted.clear()
    return changes
  }

  undo(): void {
    for (const [key, row] of this.#accepted) this.#rows.set(key, row)
    this.#accepted.clear()
  }
}

/**
 * Files, directories and blob references in memory, loaded under the lock of the catalog. Commands are checked and
 * applied here; `stored-rows.ts` then writes the resulting rows, so a rejected command writes nothing. Only `set` makes,
 * replaces and ends rows of files.
 */
export class LoadedFiles {
  readonly files: TrackedRows<StoredFile>
  readonly directories: TrackedRows<DirectoryCounts>
  readonly blobs: TrackedRows<BlobReferences>
  /** Each recorded change since the files were loaded. */
  readonly changes: FileChange[] = []
  /** Digests without references left. */
  readonly freed: string[] = []
  readonly loaded: LoadedRows
  readonly counts: CatalogCounts
  /** As of the last `accept`. */
  #accepted: CatalogCounts
  #changeId: number

  constructor(rows: LoadedRows) {
    const digests = [...rows.digests, ...rows.files.map(({ digest }) => digest)]
    this.files = new TrackedRows(rows.paths, rows.files, ({ path }) => path)
    this.directories = new TrackedRows(rows.paths, rows.directories, ({ path }) => path)
    this.blobs = new TrackedRows(digests, rows.blobs, ({ digest }) => digest)
    this.loaded = rows
    this.counts = { ...rows.counts }
    this.#accepted = rows.counts
    this.#changeId = rows.recordedAs ?? rows.counts.lastChange + 1
  }

  /**
   * Accepts the effect of a command. If it changed files, records a numbered change and returns its entry, which also
   * names the paths in `also`. Without a cause (restore), records none.
   */
  accept(cause: ChangeCause | undefined, also: string[] = []): ChangeEntry | undefined {
    const files = this.files.accept()
    const changed = new Set(files.map(({ key }) => key))
    for (const key of also) if (!changed.has(key)) files.push({ key, before: undefined, after: undefined })
    this.directories.accept()
    for (const { key, after } of this.blobs.accept()) if (!after) this.freed.push(key)
    let entry: ChangeEntry | undefined
    if (cause && files.length > 0) {
      const id = this.#changeId
      entry = entryOf(cause, { id, at: dateFor(this.loaded.dates), files })
      const change: FileChange = { entry, files, past: [], firstLost: id }
      for (const { before } of files) {
        if (!before) continue
        if (this.#isKept(before, id)) change.past.push(before)
        else change.firstLost = Math.min(change.firstLost, before.changeId)
      }
      this.changes.push(change)
      this.counts.lastChange += 1
      this.#changeId = this.loaded.recordedAs ?? this.counts.lastChange + 1
    }
    this.#accepted = { ...this.counts }
    return entry
  }

  undo(): void {
    for (const rows of [this.files, this.directories, this.blobs]) rows.undo()
    Object.assign(this.counts, this.#accepted)
  }

  /** Bytes of the blobs that have lost their last file since the last `accept`, if no blob got its first one. */
  get bytesFreed(): number {
    return this.#accepted.storedSize - this.counts.storedSize
  }

  /** Whether no file can be added at a path: it is a directory, or below a file. */
  isBlocked(path: string): boolean {
    if (this.directories.get(path)) return true
    let above = parentOf(path)
    while (!this.directories.get(above) && !this.files.get(above)) above = parentOf(above)
    return this.files.get(above) !== undefined
  }

  /** Adds or replaces the file at a path, which must not be blocked, or ends it. */
  set(path: string, file: FileRow | undefined, changeId = this.#changeId): void {
    const before = this.files.get(path)
    if (!before) this.counts.lastId += 1
    this.files.set(path, file && { ...file, id: before?.id ?? this.counts.lastId, changeId })
    const files = Number(file !== undefined) - Number(before !== undefined)
    const bytes = (file?.size ?? 0) - (before?.size ?? 0)
    this.#count(path, files, bytes)
    if (file) this.refer(file, { refs: 1 })
    if (!before) return
    this.refer(before, { refs: -1, past: Number(this.#isKept(before, this.#changeId)) })
  }

  /** Updates the counts of the directories above a file; creates missing ones, removes empty ones, except the root. */
  #count(path: string, files: number, bytes: number) {
    for (let [at, children] = [path, files]; at !== ''; ) {
      at = parentOf(at)
      const before = this.directories.get(at)
      if (!before && files < 1) throw new Error(`the directory ${at} of a file is not in the catalog`)
      const after = before ? { ...before } : { path: at, children: 0, files: 0, bytes: 0 }
      after.children += children
      after.files += files
      after.bytes += bytes
      const isEmpty = after.files === 0 && at !== ''
      this.directories.set(at, isEmpty ? undefined : after)
      children = isEmpty ? -1 : before ? 0 : 1
    }
  }

  /** Adds references to a blob, or removes negative numbers of them. A blob without any is removed. */
  refer({ digest, size }: StoredBlob, { refs = 0, past = 0 }): void {
    const before = this.blobs.get(digest) ?? { digest, size, refs: 0, past: 0 }
    // A damaged catalog may have counted fewer past rows: a file keeps its blob all the same.
    const after = { ...before, refs: before.refs + refs, past: Math.max(0, before.past + past) }
    if (after.refs < 0) throw new Error(`the content ${digest} of a file is not in the catalog`)
    this.blobs.set(digest, after.refs + after.past > 0 ? after : undefined)
    for (const [blob, sign] of [[before, -1] as const, [after, 1] as const])
      if (blob.refs + blob.past > 0) this.counts[blob.refs > 0 ? 'storedSize' : 'pastSize'] += sign * blob.size
  }

  #isKept(row: StoredFile, endedBy: number): boolean {
    return row.changeId <= this.loaded.keptUpTo && row.changeId < endedBy
  }
}

/** The columns of a file, without its number and the change that made its row. */
export function rowOf({ id: _, changeId: __, ...row }: FileRow & Partial<StoredFile>): FileRow {
  return row
}
