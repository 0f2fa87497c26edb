import type { Statement } from 'better-sqlite3'
import type { FileRow, NewFile } from '../../files/file-record.ts'
import { nameOf, parentOf } from '../../files/path-segments.ts'
import type { FileTable, FreedContents } from '../file-table.ts'
import { fold } from '../fold.ts'
import type { Database } from './database.ts'
import { DirectoryCounts } from './directory-counts.ts'
import { fileColumns } from './queries.ts'
import { bodyOf } from './search/trigrams.ts'

interface RowPosition {
  id: number
  directory: number
}

/**
 * Rows of files with everything that is derived from them: counts of directories and categories, the search index, and
 * the references to contents. For use inside a transaction.
 */
export class FileRows implements FileTable {
  readonly #directories: DirectoryCounts
  readonly #find: Statement<[string], FileRow>
  readonly #below: Statement<[string, string, number], FileRow>
  readonly #locate: Statement<[string], RowPosition>
  readonly #insert: Statement<[Record<string, unknown>]>
  readonly #update: Statement<[Record<string, unknown>]>
  readonly #delete: Statement<[number]>
  readonly #addTrigrams: Statement<[number, string]>
  readonly #dropTrigrams: Statement<[number]>
  readonly #countCategory: Statement<[string, number, number]>
  readonly #dropCategory: Statement<[string]>
  readonly #countRefs: Statement<[string], number>
  readonly #addBlob: Statement<[string, number]>
  readonly #addRefs: Statement<[number, string]>
  readonly #dropBlob: Statement<[string]>
  readonly #countStored: Statement<[number]>
  readonly #storedSize: Statement<[], number>

  // No RETURNING, and updates of one row: other statements may open a savepoint, with which FTS5 writes its gathered terms.
  constructor(db: Database) {
    this.#directories = new DirectoryCounts(db)
    this.#find = db.prepare(`select ${fileColumns} from files where path = ?`)
    this.#below = db.prepare(
      `select ${fileColumns} from files where path > ? and path < ? order by path limit ?`,
    )
    this.#locate = db.prepare('select id, directory from files where path = ?')
    this.#insert = db.prepare(
      `insert into files (directory, path, name, folded, digest, size, content_type, category,
         uploaded_by, created_at, updated_at)
       values (@directory, @path, @name, nullif(@folded, upper(@path)), @digest, @size, @contentType, @category,
         @uploadedBy, @createdAt, @updatedAt)`,
    )
    this.#update = db.prepare(
      `update files set digest = @digest, size = @size, content_type = @contentType,
         category = @category, uploaded_by = @uploadedBy, updated_at = @updatedAt where id = @id`,
    )
    this.#delete = db.prepare('delete from files where id = ?')
    this.#addTrigrams = db.prepare('insert into grams (rowid, body) values (?, ?)')
    this.#dropTrigrams = db.prepare('delete from grams where rowid = ?')
    this.#countCategory = db.prepare(
      `insert into categories values (?, ?, ?) on conflict do update set
         file_count = file_count + excluded.file_count, total_size = total_size + excluded.total_size`,
    )
    this.#dropCategory = db.prepare('delete from categories where category = ? and file_count = 0')
    this.#countRefs = db
      .prepare<[string], number>('select refs from blobs where digest = ?')
      .pluck()
    this.#addBlob = db.prepare('insert into blobs values (?, ?, 1)')
    this.#addRefs = db.prepare('update blobs set refs = refs + ? where digest = ?')
    this.#dropBlob = db.prepare('delete from blobs where digest = ?')
    this.#countStored = db.prepare('update stored set size = size + ? where only = 1')
    this.#storedSize = db.prepare<[], number>('select size from stored').pluck()
  }

  find(path: string): FileRow | undefined {
    return this.#find.get(path)
  }

  /** Files below a directory, by path, at most `limit`; the root is empty. */
  findBelow(directory: string, limit = -1): FileRow[] {
    // `0` is the character after `/`. No path contains U+10FFFF and more.
    const [after, before] =
      directory === '' ? ['', '\u{10ffff}'] : [`${directory}/`, `${directory}0`]
    return this.#below.all(after, before, limit)
  }

  isDirectory(path: string): boolean {
    return this.#directories.has(path)
  }

  /** Bytes of all distinct contents. */
  get storedSize(): number {
    return this.#storedSize.get() ?? 0
  }

  /** False, with nothing changed, when a directory of the path is a file. */
  add(row: Omit<FileRow, 'name'>, freed: FreedContents): FileRow | undefined {
    const directory = this.#directories.ensure(parentOf(row.path))
    if (directory === undefined) return undefined
    const named = { ...row, name: nameOf(row.path) }
    const folded = fold(row.path)
    const { lastInsertRowid } = this.#insert.run({ ...named, directory, folded })
    this.#addTrigrams.run(Number(lastInsertRowid), bodyOf(folded, row.category))
    this.#directories.count(directory, { files: 1, bytes: row.size })
    this.#countCategory.run(row.category, 1, row.size)
    this.#acquire(row, freed)
    return named
  }

  replace(old: FileRow, row: FileRow, freed: FreedContents): void {
    const { id, directory } = this.#positionOf(old.path)
    this.#update.run({ ...row, id })
    this.#directories.count(directory, { files: 0, bytes: row.size - old.size })
    this.#uncountCategory(old)
    this.#countCategory.run(row.category, 1, row.size)
    if (row.category !== old.category) {
      this.#dropTrigrams.run(id)
      this.#addTrigrams.run(id, bodyOf(fold(row.path), row.category))
    }
    // Acquired first: an equal content stays.
    this.#acquire(row, freed)
    this.#release(old, freed)
  }

  remove(row: FileRow, freed: FreedContents): void {
    const { id, directory } = this.#positionOf(row.path)
    this.#delete.run(id)
    this.#dropTrigrams.run(id)
    this.#directories.count(directory, { files: -1, bytes: -row.size })
    this.#uncountCategory(row)
    this.#release(row, freed)
  }

  #positionOf(path: string): RowPosition {
    const position = this.#locate.get(path)
    if (!position) throw new Error('a file that was found is not in the catalog')
    return position
  }

  #uncountCategory({ category, size }: FileRow) {
    this.#countCategory.run(category, -1, -size)
    this.#dropCategory.run(category)
  }

  #acquire({ digest, size }: NewFile, freed: FreedContents) {
    if (this.#countRefs.get(digest)) this.#addRefs.run(1, digest)
    else {
      this.#addBlob.run(digest, size)
      this.#countStored.run(size)
    }
    freed.keep(digest)
  }

  #release({ digest, size }: NewFile, freed: FreedContents) {
    if (this.#countRefs.get(digest) !== 1) {
      this.#addRefs.run(-1, digest)
      return
    }
    this.#dropBlob.run(digest)
    this.#countStored.run(-size)
    freed.add(digest, size)
  }
}
