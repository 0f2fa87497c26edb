import type { Caller } from '@domains-and-files/auth'
import {
  type BlobRef,
  name,
  one,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import type { Category } from '../files/media-type.ts'
import { keptPath } from './changes/past-rows.ts'
import { listChanges, readChange, readStates } from './history/change-log.ts'
import * as past from './history/past-files.ts'
import { readTree } from './listing/directory-tree.ts'
import { type FileList, FileListing } from './listing/list-files.ts'
import type { ListQuery } from './listing/list-query.ts'
import { among, below, belowAny } from './records.ts'
import { listVersions } from './versions.ts'

const queries = {
  tree: readTree,
  usage: readUsage,
  openTree: past.openTree,
  filesAt: past.filesAt,
  versions: listVersions,
  changes: listChanges,
  change: readChange,
  changeAt: past.changeAt,
  states: readStates,
  fileAt: past.fileAt,
  listAt: past.listAt,
  diff: past.readDiff,
  lastDeployed: past.lastDeployed,
  contents,
  contentSizes,
}

/** Queries that take longer than a look-up: in SQLite they run in a thread of their own. */
export type CatalogReads = {
  [Name in keyof typeof queries]: (
    ...input: Parameters<(typeof queries)[Name]> extends [unknown, infer Input] ? [Input] : []
  ) => ReturnType<(typeof queries)[Name]>
} & { list: (query: ListQuery) => Promise<FileList> }

export function catalogReads(database: Sql): CatalogReads {
  const bound = Object.entries(queries).map(([name, query]) => [name, (input: never) => query(database, input)])
  return { ...Object.fromEntries(bound), list: new FileListing(database).list }
}

/** As the API shows it. */
export interface CategoryCount {
  category: Category
  file_count: number
  total_size: number
}

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

// Versions are never deleted, so their last number is their count.
export const totalsStatement: Statement = sql`
  select file_count "totalFiles", total_size "totalSize", stored_size "storedSize",
    past_size "pastSize", coalesce(newest.id, 0) versions, newest.version "newestVersion"
  from ${name('directories')} cross join ${name('catalog')}
    left join (select id, version from ${name('versions')} order by id desc limit 1) newest on 1 = 1
  where path = ''`

/** Non-empty categories, the largest count first. */
const readCategories = (database: SqlTransaction): Promise<CategoryCount[]> =>
  database.all(sql`select category, file_count, total_size
    from ${name('categories')} where file_count > 0 order by file_count desc, category`)

/** What is stored below a directory: by counters for the root, which is empty; otherwise the files are counted. */
function readUsage(database: Sql, directory: string): Promise<Totals & { categories: CategoryCount[] }> {
  return database.snapshot(async (transaction) => {
    const totals = await one<Totals>(transaction, totalsStatement)
    if (directory === '') return { ...totals, categories: await readCategories(transaction) }
    const inside = sql`from ${name('files')} where ${below(directory)}`
    const categories = await transaction.all<CategoryCount>(sql`
      select category, count(*) file_count, sum(size) total_size ${inside}
      group by category order by file_count desc, category`)
    const sizes = await transaction.get(sql`select
      (select coalesce(sum(size), 0) from (select distinct digest, size ${inside}) blob) "storedSize",
      (select coalesce(sum(size), 0) from ${name('blobs')} where refs = 0 and digest in (
        select digest from ${name('past_files')} where ${below(directory)})) "pastSize"`)
    return {
      ...totals,
      ...sizes,
      categories,
      totalFiles: categories.reduce((sum, each) => sum + each.file_count, 0),
      totalSize: categories.reduce((sum, each) => sum + each.total_size, 0),
    }
  })
}

/** Blobs of current and past files whose digests begin with these hex digits. */
function contents(database: SqlTransaction, prefix: string): Promise<BlobRef[]> {
  return database.all(sql`select digest, size from ${name('blobs')} where digest between ${prefix} and ${`${prefix}g`}`)
}

/**
 * The sizes by digest of these blobs, if they are stored and visible to the caller. Limited to folders, it sees blobs of
 * current and past files there, and those kept for it.
 */
async function contentSizes(
  database: SqlTransaction,
  { digests, id, folders }: Pick<Caller, 'id' | 'folders'> & { digests: string[] },
): Promise<Map<string, number>> {
  const [isInside, kept] = [folders && belowAny(folders), digests.map((digest) => keptPath(digest, id))]
  const past = sql`select digest, size from ${name('past_files')}`
  const visible = isInside
    ? sql`(select digest, size from ${name('files')} where ${isInside} union all ${past} where ${isInside}
        union all ${past} where path ${among(kept)} and change_id = 0) content`
    : name('blobs')
  const rows = await database.all<BlobRef>(sql`select digest, size from ${visible} where digest ${among(digests)}`)
  return new Map(rows.map(({ digest, size }) => [digest, size]))
}
