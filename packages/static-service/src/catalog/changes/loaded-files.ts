import { nameOf, parentOf } from '../../files/file-path.ts'
import type { FileRow, NewFile } from '../../files/file-record.ts'
import { categories } from '../../files/media-type.ts'
import type { BlobReferences, CategoryCounts, DirectoryCounts } from '../tables.ts'
import { type ChangeCause, type ChangeEntry, entryOf } from './change-entry.ts'
import { type RowChange, TrackedRows } from './tracked-rows.ts'

/** A stored file with its number, and the change that made its row. */
export interface StoredFile extends FileRow {
  id: number
  changeId: number
}

/** Rows of a transaction. */
export interface LoadedRows {
  /** Every path that is looked up as a file or a directory, whether it exists or not. */
  paths: Set<string>
  /** Every digest that files get. */
  digests: Set<string>
  files: StoredFile[]
  /** Directories among the paths. */
  directories: DirectoryCounts[]
  /** References of the digests, and of the blobs of the files. */
  blobs: BlobReferences[]
  categories: CategoryCounts[]
  storedSize: number
  pastSize: number
  /** Rows made by this change or an earlier one are kept when they end. */
  keptUpTo: number
  /** The last number that a file has. */
  lastId: number
  /** The number of the last change. */
  lastChange: number
}

/** The effect of one change on files. */
export interface FileChange {
  entry: ChangeEntry
  files: RowChange<StoredFile>[]
  /** Rows that it ended, of those that are kept. */
  past: StoredFile[]
}

/**
 * Files, directories and blob references in memory, loaded under the lock of the catalog. Commands are checked and
 * applied here; `write-changes.ts` then writes the resulting rows, so a rejected command writes nothing. Only `add`,
 * `replace` and `remove` make, replace and end rows.
 */
export class LoadedFiles {
  readonly files: TrackedRows<StoredFile>
  readonly directories: TrackedRows<DirectoryCounts>
  readonly blobs: TrackedRows<BlobReferences>
  /** Each recorded change since the files were loaded. */
  readonly changes: FileChange[] = []
  /** Digests without references left. */
  readonly freed: string[] = []
  readonly #loaded: LoadedRows
  readonly #recordedAs: number | undefined
  #lastId: number

  /** `recordedAs`: the number of the change that this is a slice of. */
  constructor(rows: LoadedRows, recordedAs?: number) {
    const digests = [...rows.digests, ...rows.files.map(({ digest }) => digest)]
    this.files = new TrackedRows(rows.paths, byKey(rows.files, 'path'))
    this.directories = new TrackedRows(rows.paths, byKey(rows.directories, 'path'))
    this.blobs = new TrackedRows(digests, byKey(rows.blobs, 'digest'))
    this.#loaded = rows
    this.#recordedAs = recordedAs
    this.#lastId = rows.lastId
  }

  /**
   * Accepts the effect of a command. If it changed files, records a numbered change and returns its entry, which also
   * names the paths in `also`. Without a cause (restore), records none.
   */
  accept(cause: ChangeCause | undefined, at: string, also: string[] = []): ChangeEntry | undefined {
    const files = this.files.accept()
    const changed = new Set(files.map(({ key }) => key))
    for (const key of also)
      if (!changed.has(key)) files.push({ key, before: undefined, after: undefined })
    this.directories.accept()
    for (const { key, after } of this.blobs.accept()) if (!after) this.freed.push(key)
    if (files.length === 0 || !cause) return undefined
    const entry = entryOf(cause, { id: this.#changeId, at, files })
    const past = files.flatMap(({ before }) =>
      before && this.#isKept(before, entry.id) ? before : [],
    )
    this.changes.push({ entry, files, past })
    return entry
  }

  undo(): void {
    for (const rows of [this.files, this.directories, this.blobs]) rows.undo()
  }

  /** Counts every transaction that changed files, slices too. */
  get lastChange(): number {
    return this.#loaded.lastChange + this.changes.length
  }

  get #changeId(): number {
    return this.#recordedAs ?? this.lastChange + 1
  }

  get isSlice(): boolean {
    return this.#recordedAs !== undefined
  }

  /** Bytes of the distinct blobs of files. */
  get storedSize(): number {
    return this.#loaded.storedSize + growthOf(this.blobs, ({ refs }) => refs > 0)
  }

  /** Bytes of the distinct blobs that only past files have. */
  get pastSize(): number {
    return this.#loaded.pastSize + growthOf(this.blobs, ({ refs }) => refs === 0)
  }

  get categories(): TrackedRows<CategoryCounts> {
    const rows = new TrackedRows(categories, byKey(this.#loaded.categories, 'category'))
    const count = (file: StoredFile | undefined, files: 1 | -1) => {
      if (!file) return
      const { category, size } = file
      const counts = rows.get(category) ?? { category, files: 0, bytes: 0 }
      const now = { category, files: counts.files + files, bytes: counts.bytes + files * size }
      rows.set(category, now.files === 0 ? undefined : now)
    }
    for (const { before, after } of this.files.changes()) {
      count(after, 1)
      count(before, -1)
    }
    return rows
  }

  /** Bytes of the blobs that lost their last file since the last `accept`. */
  get bytesFreed(): number {
    return this.blobs.pending.reduce(
      (sum, { before, after }) => sum + (before?.refs && !after?.refs ? before.size : 0),
      0,
    )
  }

  find(path: string): StoredFile | undefined {
    return this.files.get(path)
  }

  isDirectory(path: string): boolean {
    return this.directories.get(path) !== undefined
  }

  /** Files in a directory and all below. */
  countBelow(directory: string): number {
    return this.directories.get(directory)?.files ?? 0
  }

  /** Adds a file. Undefined, with nothing changed, if a parent of the path is a file. */
  add(file: Omit<FileRow, 'name'>, changeId = this.#changeId): FileRow | undefined {
    const directory = parentOf(file.path)
    if (!this.#ensure(directory)) return undefined
    this.#lastId += 1
    const row = { ...rowOf(file), id: this.#lastId, changeId }
    this.files.set(row.path, row)
    this.#count(directory, { children: 1, files: 1, bytes: row.size })
    this.#acquire(row)
    return row
  }

  replace(old: StoredFile, row: FileRow): void {
    this.files.set(row.path, { ...row, id: old.id, changeId: this.#changeId })
    this.#count(parentOf(row.path), { children: 0, files: 0, bytes: row.size - old.size })
    // Acquires first, so that an equal blob keeps a reference.
    this.#acquire(row)
    this.#release(old)
  }

  remove(row: StoredFile): void {
    this.files.set(row.path, undefined)
    this.#count(parentOf(row.path), { children: -1, files: -1, bytes: -row.size })
    this.#release(row)
  }

  /** Creates the directory with its parents where needed; false when one of them is a file. */
  #ensure(path: string): boolean {
    if (this.isDirectory(path)) return true
    if (this.find(path) || !this.#ensure(parentOf(path))) return false
    this.directories.set(path, { path, children: 0, files: 0, bytes: 0 })
    const parent = this.#directory(parentOf(path))
    this.directories.set(parent.path, { ...parent, children: parent.children + 1 })
    return true
  }

  /** Updates the counts of the directory and its ancestors; removes empty ones, except the root. */
  #count(path: string, change: { children: number; files: number; bytes: number }) {
    const { children, files, bytes } = this.#directory(path)
    const isEmpty = files + change.files === 0 && path !== ''
    const counts = {
      path,
      children: children + change.children,
      files: files + change.files,
      bytes: bytes + change.bytes,
    }
    this.directories.set(path, isEmpty ? undefined : counts)
    if (path !== '') this.#count(parentOf(path), { ...change, children: isEmpty ? -1 : 0 })
  }

  #directory(path: string): DirectoryCounts {
    const found = this.directories.get(path)
    if (!found) throw new Error(`the directory ${path} of a file is not in the catalog`)
    return found
  }

  #acquire({ digest, size }: NewFile) {
    const blob = this.blobs.get(digest) ?? { digest, size, refs: 0, past: 0 }
    this.blobs.set(digest, { ...blob, refs: blob.refs + 1 })
  }

  #release(row: StoredFile) {
    const { digest } = row
    const blob = this.blobs.get(digest)
    if (!blob) throw new Error(`the content ${digest} of a file is not in the catalog`)
    const refs = blob.refs - 1
    const past = blob.past + (this.#isKept(row, this.#changeId) ? 1 : 0)
    this.blobs.set(digest, refs + past > 0 ? { ...blob, refs, past } : undefined)
  }

  #isKept(row: StoredFile, endedBy: number): boolean {
    return row.changeId <= this.#loaded.keptUpTo && row.changeId < endedBy
  }
}

/** Growth in bytes of the blobs that `counts` selects. */
function growthOf(blobs: TrackedRows<BlobReferences>, counts: (blob: BlobReferences) => boolean) {
  const sizeOf = (blob: BlobReferences | undefined) => (blob && counts(blob) ? blob.size : 0)
  return blobs.changes().reduce((sum, { before, after }) => sum + sizeOf(after) - sizeOf(before), 0)
}

/** The columns of a file, without its number and the change that made another row of it. */
export const rowOf = (file: Omit<FileRow, 'name'>): FileRow => ({
  path: file.path,
  name: nameOf(file.path),
  digest: file.digest,
  size: file.size,
  contentType: file.contentType,
  category: file.category,
  uploadedBy: file.uploadedBy,
  createdAt: file.createdAt,
  updatedAt: file.updatedAt,
})

const byKey = <Row, Key extends keyof Row>(
  rows: (Row & Record<Key, string>)[],
  key: Key,
): [string, Row][] => rows.map((row) => [row[key], row])
