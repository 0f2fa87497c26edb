import type { Statement } from 'better-sqlite3'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../files/file-record.ts'
import { nameOf, parentOf } from '../files/path-segments.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import type { Database } from './database.ts'
import { DirectoryCounts } from './directory-counts.ts'
import { fileColumns } from './queries.ts'
import { bodyOf, fold } from './search/trigrams.ts'

export type CatalogCommand =
  | Put
  | { kind: 'remove'; path: string; conditions: Conditions }
  | { kind: 'record'; version: NewVersion }

export interface Put {
  kind: 'put'
  files: NewFile[]
  conditions: Conditions
  quota: number | undefined
}

/** What a change came to: done, or refused for a reason, or failed, with nothing changed. */
export type Outcome =
  | { done: 'put'; rows: FileRow[]; wasNew: boolean; freed: string[] }
  | { done: 'remove'; freed: string[] }
  | { done: 'record'; version: VersionRow }
  | { refused: RejectedCommand; path: string }
  | { failed: string; code: string }

export type RejectedCommand =
  | 'path_conflict'
  | 'precondition_failed'
  | 'quota_exceeded'
  | 'file_not_found'
  | 'version_exists'

interface Place {
  id: number
  directory: number
}

/** Changes the catalog: each change whole or not at all, and all counts with it. */
export class Transactions {
  readonly #db: Database
  readonly #directories: DirectoryCounts
  readonly #find: Statement<[string], FileRow>
  readonly #locate: Statement<[string], Place>
  readonly #insert: Statement<[Record<string, unknown>], { id: number }>
  readonly #update: Statement<[Record<string, unknown>]>
  readonly #delete: Statement<[number]>
  readonly #addGrams: Statement<[number, string]>
  readonly #dropGrams: Statement<[number]>
  readonly #countCategory: Statement<[string, number, number]>
  readonly #dropCategory: Statement<[string]>
  readonly #refer: Statement<[string, number, number], { refs: number; size: number }>
  readonly #dropBlob: Statement<[string]>
  readonly #countStored: Statement<[number], { size: number }>
  readonly #addVersion: Statement<[Record<string, unknown>], VersionRow>

  constructor(db: Database) {
    this.#db = db
    this.#directories = new DirectoryCounts(db)
    this.#find = db.prepare(`select ${fileColumns} from files where path = ?`)
    this.#locate = db.prepare('select id, directory from files where path = ?')
    this.#insert = db.prepare(
      `insert into files (directory, path, name, folded, digest, size, content_type, category,
         uploaded_by, created_at, updated_at)
       values (@directory, @path, @name, nullif(@folded, upper(@path)), @digest, @size, @contentType, @category,
         @uploadedBy, @createdAt, @updatedAt) returning id`,
    )
    this.#update = db.prepare(
      `update files set digest = @digest, size = @size, content_type = @contentType,
         category = @category, uploaded_by = @uploadedBy, updated_at = @updatedAt where id = @id`,
    )
    this.#delete = db.prepare('delete from files where id = ?')
    this.#addGrams = db.prepare('insert into grams (rowid, body) values (?, ?)')
    this.#dropGrams = db.prepare('delete from grams where rowid = ?')
    this.#countCategory = db.prepare(
      `insert into categories values (?, ?, ?) on conflict do update set
         file_count = file_count + excluded.file_count, total_size = total_size + excluded.total_size`,
    )
    this.#dropCategory = db.prepare('delete from categories where category = ? and file_count = 0')
    this.#refer = db.prepare(
      `insert into blobs values (?, ?, ?) on conflict do update set refs = refs + excluded.refs
       returning refs, size`,
    )
    this.#dropBlob = db.prepare('delete from blobs where digest = ?')
    this.#countStored = db.prepare('update stored set size = size + ? returning size')
    this.#addVersion = db.prepare(
      `insert into versions (version, changelog, created_by, created_at)
       values (@version, @changelog, @createdBy, @createdAt) on conflict do nothing
       returning id, version, changelog, created_by createdBy, created_at createdAt`,
    )
  }

  /** Several changes of several callers in one commit; a refused one leaves the others be. */
  commit(changes: CatalogCommand[]): Outcome[] {
    const [only, ...others] = changes
    // One alone is not nested: SQLite's log to undo a nested one is slow where it is long.
    if (only && others.length === 0) return [this.#tryOne(only)]
    return this.#db.transaction(() => changes.map((change) => this.#tryOne(change))).immediate()
  }

  // Nested where there are others, so it is undone alone.
  #tryOne(change: CatalogCommand): Outcome {
    try {
      return this.#db.transaction(() => this.#apply(change)).immediate()
    } catch (error) {
      if (error instanceof Refused) return { refused: error.reason, path: error.path }
      throw error
    }
  }

  #apply(change: CatalogCommand): Outcome {
    if (change.kind === 'record') return this.#record(change.version)
    if (change.kind === 'remove') return this.#remove(change.path, change.conditions)
    return this.#put(change)
  }

  #put({ files, conditions, quota }: Put): Outcome {
    const freed = new Set<string>()
    const now = new Date().toISOString()
    let wasNew = true
    const rows = files.map((file) => {
      const before = this.#find.get(file.path)
      if (!before && this.#directories.has(file.path)) throw new Refused('path_conflict', file.path)
      if (!holds(conditions, before)) throw new Refused('precondition_failed', file.path)
      if (before) wasNew = false
      const row = before ? this.#replace(before, file, now) : this.#add(file, now)
      // Added before the other is dropped: equal contents stay.
      this.#count(row.digest, row.size, 1)
      if (before) this.#count(before.digest, before.size, -1, freed)
      return row
    })
    const stored = this.#countStored.get(0)?.size ?? 0
    if (quota !== undefined && stored > quota) throw new Refused('quota_exceeded', '')
    return { done: 'put', rows, wasNew, freed: [...freed] }
  }

  #add(file: NewFile, now: string): FileRow {
    const directory = this.#directories.ensure(parentOf(file.path))
    if (directory === undefined) throw new Refused('path_conflict', file.path)
    const row = { ...file, name: nameOf(file.path), createdAt: now, updatedAt: now }
    const folded = fold(file.path)
    const id = this.#insert.get({ ...row, directory, folded })?.id
    if (id === undefined) throw new Error('an inserted row has no id')
    this.#addGrams.run(id, bodyOf(folded, file.category))
    this.#directories.count(directory, { files: 1, bytes: file.size })
    this.#countCategory.run(file.category, 1, file.size)
    return row
  }

  #replace(old: FileRow, file: NewFile, now: string) {
    const { id, directory } = this.#place(old.path)
    const row: FileRow = { ...old, ...file, updatedAt: now }
    this.#update.run({ ...row, id })
    this.#directories.count(directory, { files: 0, bytes: file.size - old.size })
    this.#uncountCategory(old)
    this.#countCategory.run(file.category, 1, file.size)
    if (file.category !== old.category) {
      this.#dropGrams.run(id)
      this.#addGrams.run(id, bodyOf(fold(file.path), file.category))
    }
    return row
  }

  #remove(path: string, conditions: Conditions): Outcome {
    const row = this.#find.get(path)
    if (!row) throw new Refused('file_not_found', path)
    if (!holds(conditions, row)) throw new Refused('precondition_failed', path)
    const { id, directory } = this.#place(path)
    const freed = new Set<string>()
    this.#delete.run(id)
    this.#dropGrams.run(id)
    this.#directories.count(directory, { files: -1, bytes: -row.size })
    this.#uncountCategory(row)
    this.#count(row.digest, row.size, -1, freed)
    return { done: 'remove', freed: [...freed] }
  }

  #record(version: NewVersion): Outcome {
    const row = this.#addVersion.get({ ...version, createdAt: new Date().toISOString() })
    if (!row) throw new Refused('version_exists', version.version)
    return { done: 'record', version: row }
  }

  #place(path: string): Place {
    const place = this.#locate.get(path)
    if (!place) throw new Error('a file that was found is not in the catalog')
    return place
  }

  #uncountCategory({ category, size }: FileRow) {
    this.#countCategory.run(category, -1, -size)
    this.#dropCategory.run(category)
  }

  #count(digest: string, size: number, by: 1 | -1, freed?: Set<string>) {
    const blob = this.#refer.get(digest, size, by)
    if (by === 1 && blob?.refs === 1) this.#countStored.run(size)
    if (blob?.refs !== 0) return
    this.#dropBlob.run(digest)
    this.#countStored.run(-size)
    freed?.add(digest)
  }
}

class Refused extends Error {
  readonly reason: RejectedCommand
  readonly path: string

  constructor(reason: RejectedCommand, path: string) {
    super(reason)
    this.reason = reason
    this.path = path
  }
}
