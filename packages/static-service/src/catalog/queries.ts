import type { Statement } from 'better-sqlite3'
import type { CategoryCount, FileRow, VersionRow } from '../files/file-record.ts'
import type { Database } from './database.ts'

export const fileColumns = `path, name, digest, size, content_type contentType, category,
  uploaded_by uploadedBy, created_at createdAt, updated_at updatedAt`

const versionColumns = 'id, version, changelog, created_by createdBy, created_at createdAt'

export interface Totals {
  totalFiles: number
  totalSize: number
  storedSize: number
  versions: number
}

/** The questions that take microseconds whatever the size of the store: looked up by key, or counted beforehand. */
export class Queries {
  readonly #find: Statement<[string], FileRow>
  readonly #refers: Statement<[string], unknown>
  readonly #categories: Statement<[], CategoryCount>
  readonly #totals: Statement<[], Totals>
  readonly #newest: Statement<[], VersionRow>

  constructor(db: Database) {
    this.#find = db.prepare(`select ${fileColumns} from files where path = ?`)
    this.#refers = db.prepare('select 1 from blobs where digest = ?')
    this.#categories = db.prepare(
      `select category, file_count fileCount, total_size totalSize from categories
       order by file_count desc, category`,
    )
    // Versions are never deleted, so their last number is their count.
    this.#totals = db.prepare(
      `select file_count totalFiles, total_size totalSize, (select size from stored) storedSize,
         coalesce((select max(id) from versions), 0) versions
       from directories where id = 1`,
    )
    this.#newest = db.prepare(`select ${versionColumns} from versions order by id desc limit 1`)
  }

  find(path: string): FileRow | undefined {
    return this.#find.get(path)
  }

  isReferenced(digest: string): boolean {
    return this.#refers.get(digest) !== undefined
  }

  categories(): CategoryCount[] {
    return this.#categories.all()
  }

  totals(): Totals {
    const totals = this.#totals.get()
    if (!totals) throw new Error('the catalog has no root directory')
    return totals
  }

  newestVersion(): VersionRow | undefined {
    return this.#newest.get()
  }
}

/** The page of versions that begins after `skip`, newest first. */
export const listVersions = (db: Database, { skip, take }: { skip: number; take: number }) =>
  db
    .prepare<[number, number], VersionRow>(
      `select ${versionColumns} from versions order by id desc limit ? offset ?`,
    )
    .all(take, skip)
