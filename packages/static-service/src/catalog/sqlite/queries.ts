import type { Statement } from 'better-sqlite3'
import type { CategoryCount, FileRow, VersionRow } from '../../files/file-record.ts'
import { parentOf } from '../../files/path-segments.ts'
import type { ListedVersion, SizeRange, Totals } from '../catalog.ts'
import { cutChangelog, maxListedBytes } from '../listed-version.ts'
import type { Database } from './database.ts'

export const fileColumns = `path, name, digest, size, content_type contentType, category,
  uploaded_by uploadedBy, created_at createdAt, updated_at updatedAt`

const versionColumns = 'id, version, changelog, created_by createdBy, created_at createdAt'

/** Queries that take microseconds at any size of the store: lookups by key, and counters. They run on the main thread. */
export class Queries {
  readonly #find: Statement<[string], FileRow>
  readonly #directory: Statement<[string], unknown>
  readonly #ofSize: Statement<[number, number], unknown>
  readonly #freed: Statement<[string], { size: number }>
  readonly #refers: Statement<[string], unknown>
  readonly #categories: Statement<[], CategoryCount>
  readonly #totals: Statement<[], Totals>
  readonly #newest: Statement<[], VersionRow>
  readonly #version: Statement<[string], VersionRow>

  constructor(db: Database) {
    this.#find = db.prepare(`select ${fileColumns} from files where path = ?`)
    this.#directory = db.prepare('select 1 from directories where path = ?')
    this.#ofSize = db.prepare('select 1 from files where size between ? and ? limit 1')
    this.#freed = db.prepare(
      `select blobs.size from files join blobs using (digest) where path = ? and refs = 1`,
    )
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
    this.#version = db.prepare(`select ${versionColumns} from versions where version = ?`)
  }

  find(path: string): FileRow | undefined {
    return this.#find.get(path)
  }

  /** Whether the path is a directory, or lies below a file. */
  conflictsWith(path: string): boolean {
    if (this.#directory.get(path)) return true
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
      if (this.#directory.get(above)) return false
      if (this.#find.get(above)) return true
    }
    return false
  }

  hasFileOfSize({ minBytes, maxBytes }: SizeRange): boolean {
    return this.#ofSize.get(minBytes, maxBytes) !== undefined
  }

  /** Bytes that are freed when the file at this path goes: none if another file has the same content. */
  freedBy(path: string): number {
    return this.#freed.get(path)?.size ?? 0
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

  findVersion(version: string): VersionRow | undefined {
    return this.#version.get(version)
  }
}

/** The first two hex digits of all contents. */
export const contentPrefixes = (db: Database): string[] =>
  db.prepare<[], string>('select distinct substr(digest, 1, 2) from blobs').pluck().all()

/** The contents whose digests begin with two hex digits. */
export const contentsOf = (db: Database, prefix: string): { digest: string; size: number }[] =>
  db
    .prepare<[string, string], { digest: string; size: number }>(
      'select digest, size from blobs where digest between ? and ?',
    )
    .all(prefix, `${prefix}g`)

/** The page of versions after the first `skip`, newest first. */
export function listVersions(
  db: Database,
  { skip, take }: { skip: number; take: number },
): ListedVersion[] {
  const rows = db
    .prepare<[number, number, number], VersionRow & { bytes: number }>(
      `select id, version, substr(changelog, 1, ?) changelog, octet_length(changelog) bytes,
         created_by createdBy, created_at createdAt
       from versions order by id desc limit ? offset ?`,
    )
    .all(maxListedBytes, take, skip)
  return rows.map(cutChangelog)
}
