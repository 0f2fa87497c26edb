import type { BlobRef } from '@domains-and-files/persistence'
import { parentOf } from '../../files/file-path.ts'
import type { BlobReferences, ChangeCause, ChangeEntry, DirectoryCounts, FileRow, StoredFile } from '../tables.ts'

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

/** The effect of a command on a row. */
export interface RowChange<Row> {
  key: string
  before: Row | undefined
  after: Row | undefined
}

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
  readonly #keyOf: (row: Row) => string
  /** Undefined: no such row. */
  readonly #rows = new Map<string, Row | undefined>()
  /** Rows that were set since the last `accept`, as they were then. */
  readonly #accepted = new Map<string, Row | undefined>()
  /** Rows that were accepted since the last `flush`, as they were then. */
  readonly #flushed = new Map<string, Row | undefined>()

  constructor(keyOf: (row: Row) => string) {
    this.#keyOf = keyOf
  }

  has(key: string): boolean {
    return this.#rows.has(key)
  }

  /** `keys`: keys that may be used from now on; `rows`: the existing ones of them. */
  load(keys: Iterable<string>, rows: Row[]): void {
    for (const row of rows) this.#rows.getOrInsert(this.#keyOf(row), row)
    for (const key of keys) this.#rows.getOrInsert(key, undefined)
  }

  get(key: string): Row | undefined {
    if (!this.has(key)) throw new Error(`the row of ${key} was not loaded`)
    return this.#rows.get(key)
  }

  set(key: string, row: Row | undefined): void {
    this.#accepted.getOrInsert(key, this.get(key))
    this.#rows.set(key, row)
  }

  /** Makes the changes since the last `accept` permanent, and returns them. */
  accept(): RowChange<Row>[] {
    const changes = this.#changesSince(this.#accepted)
    for (const { key, before } of changes) this.#flushed.getOrInsert(key, before)
    return changes
  }

  undo(): void {
    for (const [key, row] of this.#accepted) this.#rows.set(key, row)
    this.#accepted.clear()
  }

  /** The net changes that were accepted since the last call. Call it when all changes are accepted or undone. */
  flush(): RowChange<Row>[] {
    return this.#changesSince(this.#flushed)
  }

  #changesSince(earlier: Map<string, Row | undefined>): RowChange<Row>[] {
    const changes = [...earlier].map(([key, before]) => ({ key, before, after: this.#rows.get(key) }))
    earlier.clear()
    return changes.filter(({ before, after }) => before !== after)
  }
}

/**
 * The files, directories and blob references that a transaction changes, loaded under the lock of the catalog. Commands
 * are checked and applied here; `stored-rows.ts` writes the rows that were accepted, so a rejected command writes
 * nothing. Only `set` makes, replaces and ends rows of files.
 */
export class LoadedFiles {
  readonly files = new TrackedRows<StoredFile>(({ path }) => path)
  readonly directories = new TrackedRows<DirectoryCounts>(({ path }) => path)
  readonly blobs = new TrackedRows<BlobReferences>(({ digest }) => digest)
  /** Digests without bytes: files cannot get them. */
  readonly missing = new Set<string>()
  /** Recorded changes that are not written yet. */
  readonly changes: FileChange[] = []
  /** Paths that accepted commands changed. */
  readonly changed: string[] = []
  /** Digests that an accepted command left without references. */
  readonly freed: string[] = []
  /** The dates that files get. */
  readonly dates: ChangeDates
  /** Maximum bytes of the distinct blobs of files. */
  readonly quota: number
  readonly counts: CatalogCounts = { storedSize: 0, pastSize: 0, lastId: 0, lastChange: 0 }
  /** The number of the change that this is a slice of. */
  recordedAs: number | undefined
  /** Rows made by this change or an earlier one are kept when they end. */
  keptUpTo = -1
  /** As of the last `accept`. */
  #accepted: CatalogCounts = this.counts

  constructor({ clock, quota = Number.POSITIVE_INFINITY }: { clock: string; quota?: number | undefined }) {
    this.dates = { clock, latest: '' }
    this.quota = quota
  }

  /** Sets what is the same for all rows. */
  begin(counts: CatalogCounts, { latest, keptUpTo }: { latest: string; keptUpTo: number }): void {
    Object.assign(this.counts, counts)
    this.#accepted = counts
    this.dates.latest = latest
    this.keptUpTo = keptUpTo
  }

  get #changeId(): number {
    return this.recordedAs ?? this.counts.lastChange + 1
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
      entry = entryOf(cause, { id, at: dateFor(this.dates), files })
      const change: FileChange = { entry, files, past: [], firstLost: id }
      for (const { before } of files) {
        if (!before) continue
        if (this.#isKept(before, id)) change.past.push(before)
        else change.firstLost = Math.min(change.firstLost, before.changeId)
      }
      this.changes.push(change)
      for (const { key } of files) this.changed.push(key)
      this.counts.lastChange += 1
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
  refer({ digest, size }: BlobRef, { refs = 0, past = 0 }): void {
    const before = this.blobs.get(digest) ?? { digest, size, refs: 0, past: 0 }
    // A damaged catalog may have counted fewer past rows: a file keeps its blob all the same.
    const after = { ...before, refs: before.refs + refs, past: Math.max(0, before.past + past) }
    if (after.refs < 0) throw new Error(`the content ${digest} of a file is not in the catalog`)
    this.blobs.set(digest, after.refs + after.past > 0 ? after : undefined)
    for (const [blob, sign] of [[before, -1] as const, [after, 1] as const])
      if (blob.refs + blob.past > 0) this.counts[blob.refs > 0 ? 'storedSize' : 'pastSize'] += sign * blob.size
  }

  #isKept(row: StoredFile, endedBy: number): boolean {
    return row.changeId <= this.keptUpTo && row.changeId < endedBy
  }
}

const maxPaths = 10

/** The entry of a change that did this to files. */
function entryOf(
  cause: ChangeCause,
  { id, at, files }: { id: number; at: string; files: RowChange<{ size: number }>[] },
): ChangeEntry {
  const counts = { added: 0, replaced: 0, removed: 0 }
  const bytes = { stored: 0, removed: 0 }
  for (const { before, after } of files) {
    if (before || after) counts[after ? (before ? 'replaced' : 'added') : 'removed'] += 1
    bytes.stored += after?.size ?? 0
    bytes.removed += after ? 0 : (before?.size ?? 0)
  }
  return {
    ...cause,
    prefix: cause.prefix ?? null,
    version: cause.version ?? null,
    ...counts,
    id,
    at,
    bytes: counts.added + counts.replaced > 0 ? bytes.stored : bytes.removed,
    paths: files.slice(0, maxPaths).map(({ key }) => key),
    isForgotten: false,
  }
}

/** The time of a transaction, and the latest date that the catalog knows, both as ISO 8601. */
export interface ChangeDates {
  readonly clock: string
  latest: string
}

/**
 * The date of a file that is stored or ends now, as ISO 8601; `before`: the date of the file that it replaces, or its
 * own. At each path dates never go backwards, even if the clock does, and no two rows share a second that a client may
 * have seen. Otherwise a client that compares whole seconds (RFC 9110, 8.8.2) would take a new file for the one it has.
 */
export function dateFor(dates: ChangeDates, before?: string): string {
  const isBehind = dates.clock < dates.latest
  const now = isBehind ? dates.latest : dates.clock
  const date = isBehind && before && secondOf(before) >= secondOf(now) ? nextSecond(before) : now
  if (date > dates.latest) dates.latest = date
  return date
}

const secondOf = (date: string) => date.slice(0, 19)

const nextSecond = (date: string) => new Date((Math.floor(Date.parse(date) / 1000) + 1) * 1000).toISOString()

/** The columns of a file, without its number and the change that made its row. */
export function rowOf({ id: _, changeId: __, ...row }: FileRow & Partial<StoredFile>): FileRow {
  return row
}
