import { name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { parentOf } from '../files/file-path.ts'
import type { CategoryCount, FileRow, VersionRow } from '../files/file-record.ts'
import { among, selected } from './records.ts'
import { fileRow, versionColumns } from './tables.ts'

const versionRow = selected(versionColumns)

export interface Totals {
  totalFiles: number
  totalSize: number
  /** Bytes of the distinct blobs of files. */
  storedSize: number
  /** Bytes of the distinct blobs that are kept only for the history. */
  pastSize: number
  versions: number
  /** The newest version record; null: none. */
  newestVersion: string | null
}

export interface SizeRange {
  minBytes: number
  maxBytes: number
}

/** Look-ups by key, and counters: they take microseconds at any size of the store. */
export class Queries {
  readonly #sql: SqlTransaction

  constructor(database: SqlTransaction) {
    this.#sql = database
  }

  /** The file at a path, and whether the path is a directory or lies below a file. */
  async findTarget(path: string): Promise<{ row: FileRow | undefined; conflicts: boolean }> {
    const above: string[] = []
    for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
    // A union of look-ups: SQLite takes ten times as long for a left join of the file to a constant row.
    const rows = await this.#sql.all<FileRow | { path: null }>(
      sql`select ${fileRow} from ${name('files')} where path = ${path}
        union all select null, null, null, null, null, null, null, null
        where exists (select 1 from ${name('directories')} where path = ${path})
          or exists (select 1 from ${name('files')} where path ${among(above)})`,
    )
    const row = rows.find((one) => one.path !== null)
    return { row, conflicts: rows.some((one) => one.path === null) }
  }

  /** Non-empty categories, the largest count first. */
  categories(): Promise<CategoryCount[]> {
    return this.#sql.all(sql`select category, file_count "fileCount", total_size "totalSize"
      from ${name('categories')} where file_count > 0 order by file_count desc, category`)
  }

  /** Bytes of all contents, and what of it depends on a new one at this path. */
  async readQuota(path: string, { minBytes, maxBytes }: SizeRange) {
    const found = await this.#sql.get<{
      storedSize: number
      hasSize: boolean | number
      freed: number
    }>(sql`select stored_size "storedSize",
        exists (select 1 from ${name('files')} where size between ${minBytes} and ${maxBytes}) "hasSize",
        coalesce((select blob.size from ${name('files')} file join ${name('blobs')} blob on blob.digest = file.digest
          where file.path = ${path} and refs = 1), 0) freed
      from ${name('catalog')}`)
    if (!found) throw new Error('the catalog has no row of counts')
    return found
  }

  /** Whether a current or past file has this digest. */
  async isReferenced(digest: string): Promise<boolean> {
    const found = await this.#sql.get(sql`select 1 from ${name('blobs')} where digest = ${digest}`)
    return found !== undefined
  }

  async totals(): Promise<Totals> {
    const totals = await this.#sql.get<Totals>(totalsStatement)
    if (!totals) throw new Error('the catalog has no root directory')
    return totals
  }

  newestVersion(): Promise<VersionRow | undefined> {
    return this.#sql.get(
      sql`select ${versionRow} from ${name('versions')} order by id desc limit 1`,
    )
  }

  findVersion(version: string): Promise<VersionRow | undefined> {
    return this.#sql.get(
      sql`select ${versionRow} from ${name('versions')} where version = ${version}`,
    )
  }

  /** The paths of current and past files with this digest, in order. */
  async pathsOf(digest: string): Promise<string[]> {
    const rows = await this.#sql.all<{ path: string }>(
      sql`select path from ${name('files')} where digest = ${digest} union
        select 'the past of ' || path from ${name('past_files')} where digest = ${digest} order by path`,
    )
    return rows.map(({ path }) => path)
  }
}

// Versions are never deleted, so their last number is their count.
export const totalsStatement: Statement = sql`
  select file_count "totalFiles", total_size "totalSize", stored_size "storedSize",
    past_size "pastSize", coalesce(newest.id, 0) versions, newest.version "newestVersion"
  from ${name('directories')} cross join ${name('catalog')}
    left join (select id, version from ${name('versions')} order by id desc limit 1) newest on 1 = 1
  where path = ''`
