import type { Statement } from 'better-sqlite3'
import { nameOf, parentOf } from '../../files/path-segments.ts'
import type { Database } from './database.ts'

interface Directory {
  id: number
  parent: number | null
  file_count: number
}

/** Directories with the number and size of the files below them. They exist while they contain files. */
export class DirectoryCounts {
  readonly #byPath: Statement<[string], Directory>
  readonly #byId: Statement<[number], Directory>
  readonly #fileAt: Statement<[string], unknown>
  readonly #insert: Statement<[number, string, string]>
  readonly #delete: Statement<[number]>
  readonly #count: Statement<[number, number, number, number]>

  constructor(db: Database) {
    this.#byPath = db.prepare('select id, parent, file_count from directories where path = ?')
    this.#byId = db.prepare('select id, parent, file_count from directories where id = ?')
    this.#fileAt = db.prepare('select 1 from files where path = ?')
    this.#insert = db.prepare('insert into directories (parent, path, name) values (?, ?, ?)')
    this.#delete = db.prepare('delete from directories where id = ?')
    this.#count = db.prepare(
      `update directories set children = children + ?, file_count = file_count + ?,
       total_size = total_size + ? where id = ?`,
    )
  }

  has(path: string): boolean {
    return this.#byPath.get(path) !== undefined
  }

  /** Id of the directory, created with its parents where needed; undefined when one of them is a file. */
  ensure(path: string): number | undefined {
    const known = this.#byPath.get(path)
    if (known) return known.id
    if (this.#fileAt.get(path)) return undefined
    const parent = this.ensure(parentOf(path))
    if (parent === undefined) return undefined
    this.#count.run(1, 0, 0, parent)
    return Number(this.#insert.run(parent, path, nameOf(path)).lastInsertRowid)
  }

  /** Adds a file, or subtracts it, in its directory and all above; empty ones are deleted. */
  count(id: number, change: { files: -1 | 0 | 1; bytes: number }): void {
    this.#count.run(change.files, 0, 0, id)
    for (let at: number | null = id; at !== null; ) {
      this.#count.run(0, change.files, change.bytes, at)
      const directory = this.#byId.get(at)
      if (!directory) throw new Error('a directory is not in the catalog')
      if (directory.file_count === 0 && directory.parent !== null) {
        this.#delete.run(at)
        this.#count.run(-1, 0, 0, directory.parent)
      }
      at = directory.parent
    }
  }
}
