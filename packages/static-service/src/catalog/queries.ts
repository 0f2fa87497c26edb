import {
  join,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import type { CategoryCount, FileRow, VersionRow } from '../files/file-record.ts'
import { parentOf } from '../files/path-segments.ts'
import { below } from './changes/load-files.ts'
import { keptPath } from './history/past-rows.ts'
import { among } from './records.ts'
import { versionColumns } from './versions.ts'

/** The columns of a file, named as in `FileRow`. */
export const fileColumns: Statement = sql`path, name, digest, size, content_type "contentType", category,
  uploaded_by "uploadedBy", created_at "createdAt", updated_at "updatedAt"`

export interface Totals {
  totalFiles: number
  totalSize: number
  /** Bytes of the distinct contents of files. */
  storedSize: number
  /** Bytes of the distinct contents that are kept only for the history. */
  pastSize: number
  versions: number
}

export interface Usage extends Totals {
  /** Those with files, largest count first. */
  categories: CategoryCount[]
}

/** Who names contents: limited to folders, those that a file there has or had, and those that are kept for it. */
export interface ContentReader {
  /** As `Caller.id`. */
  id: string
  /** Each ends in a slash; undefined: all. */
  folders?: readonly string[] | undefined
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

  find(path: string): Promise<FileRow | undefined> {
    return this.#sql.get(sql`select ${fileColumns} from ${name('files')} where path = ${path}`)
  }

  /** The file at a path, and whether the path is a directory or lies below a file. */
  async findTarget(path: string): Promise<{ row: FileRow | undefined; conflicts: boolean }> {
    const above: string[] = []
    for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
    // A union of look-ups: SQLite takes ten times as long for a left join of the file to a constant row.
    const rows = await this.#sql.all<FileRow | { path: null }>(
      sql`select ${fileColumns} from ${name('files')} where path = ${path}
        union all select null, null, null, null, null, null, null, null, null
        where exists (select 1 from ${name('directories')} where path = ${path})
          or exists (select 1 from ${name('files')} where path ${among(above)})`,
    )
    const row = rows.find((one) => one.path !== null)
    return { row, conflicts: rows.some((one) => one.path === null) }
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

  /** Whether a file has the content, now or in the past. */
  async isReferenced(digest: string): Promise<boolean> {
    const found = await this.#sql.get(sql`select 1 from ${name('blobs')} where digest = ${digest}`)
    return found !== undefined
  }

  /** By its counters for the root; below a directory the files are counted. */
  async usage(directory: string): Promise<Usage> {
    const totals = await this.totals()
    if (directory === '') {
      const categories = await this.#sql.all<CategoryCount>(sql`
        select category, file_count "fileCount", total_size "totalSize"
        from ${name('categories')} order by file_count desc, category`)
      return { ...totals, categories }
    }
    const inside = sql`from ${name('files')} where ${below(directory)}`
    const categories = await this.#sql.all<CategoryCount>(sql`
      select category, count(*) "fileCount", sum(size) "totalSize" ${inside}
      group by category order by "fileCount" desc, category`)
    const stored = await this.#sql.get<{ bytes: number }>(sql`
      select coalesce(sum(size), 0) bytes from (select distinct digest, size ${inside}) blob`)
    const past = await this.#sql.get<{ bytes: number }>(sql`
      select coalesce(sum(size), 0) bytes from ${name('blobs')} where refs = 0 and digest in (
        select digest from ${name('past_files')} where ${below(directory)})`)
    return {
      ...{ categories, versions: totals.versions, storedSize: stored?.bytes ?? 0 },
      pastSize: past?.bytes ?? 0,
      totalFiles: categories.reduce((sum, { fileCount }) => sum + fileCount, 0),
      totalSize: categories.reduce((sum, { totalSize }) => sum + totalSize, 0),
    }
  }

  async totals(): Promise<Totals> {
    const { newestVersion: _, ...totals } = await this.readStatus()
    return totals
  }

  /** Counters, and the newest version record's name. */
  async readStatus(): Promise<Totals & { newestVersion: string | null }> {
    const totals = await this.#sql.get<Totals & { newestVersion: string | null }>(totalsStatement)
    if (!totals) throw new Error('the catalog has no root directory')
    return totals
  }

  newestVersion(): Promise<VersionRow | undefined> {
    return this.#sql.get(
      sql`select ${versionColumns} from ${name('versions')} order by id desc limit 1`,
    )
  }

  findVersion(version: string): Promise<VersionRow | undefined> {
    return this.#sql.get(
      sql`select ${versionColumns} from ${name('versions')} where version = ${version}`,
    )
  }

  /** The first two hex digits of all contents. */
  async contentPrefixes(): Promise<string[]> {
    const rows = await this.#sql.all<{ prefix: string }>(
      sql`select distinct substr(digest, 1, 2) prefix from ${name('blobs')} order by 1`,
    )
    return rows.map(({ prefix }) => prefix)
  }

  /** The contents whose digests begin with two hex digits. */
  contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#sql.all(sql`select digest, size from ${name('blobs')}
      where digest between ${prefix} and ${`${prefix}g`}`)
  }

  /** The sizes of those of these contents that are stored and that the reader may know of, by digest. */
  async contentSizes(
    digests: string[],
    { id, folders }: ContentReader,
  ): Promise<Map<string, number>> {
    const rows = await this.#sql.all<{ digest: string; size: number }>(
      sql`select digest, size from ${folders ? known(digests, { id, folders }) : name('blobs')}
        where digest ${among(digests)}`,
    )
    return new Map(rows.map(({ digest, size }) => [digest, size]))
  }

  /** The files with this content, now or in the past, by path. */
  async pathsOf(digest: string): Promise<string[]> {
    const rows = await this.#sql.all<{ path: string }>(
      sql`select path from ${name('files')} where digest = ${digest} union
        select 'the past of ' || path from ${name('past_files')} where digest = ${digest} order by path`,
    )
    return rows.map(({ path }) => path)
  }
}

// Contents of the caller's own: see `ContentReader`.
function known(
  digests: string[],
  { id, folders }: { id: string; folders: readonly string[] },
): Statement {
  const inside = folders.map((folder) => sql`(${below(folder.slice(0, -1))})`)
  const isInside = sql`(${join([sql`1 = 0`, ...inside], ' or ')})`
  const kept = digests.map((digest) => keptPath(digest, id))
  const [files, past] = [name('files'), name('past_files')]
  return sql`(select digest, size from ${files} where ${isInside}
    union all select digest, size from ${past} where ${isInside}
    union all select digest, size from ${past} where path ${among(kept)} and change_id = 0) content`
}

// Versions are never deleted, so their last number is their count.
export const totalsStatement: Statement = sql`
  select file_count "totalFiles", total_size "totalSize", stored_size "storedSize",
    past_size "pastSize", coalesce(newest.id, 0) versions, newest.version "newestVersion"
  from ${name('directories')} cross join ${name('catalog')}
    left join (select id, version from ${name('versions')} order by id desc limit 1) newest on 1 = 1
  where path = ''`
