import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { below } from '../records.ts'

export interface DiffQuery {
  /** The root is empty. */
  directory: string
  /** The changes that produced the two states. */
  from: number
  to: number
  page: number
  pageSize: number
  /** Files after this path, in place of the page. */
  after?: string | undefined
}

interface Content {
  digest: string
  size: number
}

/** A path with different digests; null: no file. */
export interface DiffFile {
  path: string
  before: Content | null
  after: Content | null
}

export interface TreeDiff {
  files: DiffFile[]
  total: number
  /** Pass as `after` for the next page; undefined: last page. */
  next: string | undefined
}

interface DiffRow {
  path: string
  oldDigest: string | null
  oldSize: number
  newDigest: string | null
  newSize: number
}

/** Differences below a directory between two changes, by path. Reads only rows that began or ended in between. */
export async function readDiff(
  database: Pick<SqlTransaction, 'all' | 'get'>,
  { directory, from, to, page, pageSize, after }: DiffQuery,
): Promise<TreeDiff> {
  const [first, last] = [Math.min(from, to), Math.max(from, to)]
  const [files, past] = [name('files'), name('past_files')]
  const isMade = sql`change_id > ${first} and change_id <= ${last}`
  const differing = sql`
    select path, max(case when side = 0 then digest end) "oldDigest", max(case when side = 0 then size end) "oldSize",
      max(case when side = 1 then digest end) "newDigest", max(case when side = 1 then size end) "newSize"
    from (
      select path, digest, size, 0 side from ${past}
        where change_id <= ${first} and ended_by > ${first} and ended_by <= ${last}
      union all select path, digest, size, 1 from ${files} where ${isMade}
      union all select path, digest, size, 1 from ${past} where ${isMade} and ended_by > ${last}
    ) moved
    where ${below(directory)} group by path
    having max(case when side = 0 then digest end) is distinct from max(case when side = 1 then digest end)`
  const rows = await database.all<DiffRow>(
    sql`select * from (${differing}) diff where path > ${after ?? ''} order by path
      limit ${pageSize + 1} offset ${after === undefined ? (page - 1) * pageSize : 0}`,
  )
  const counted = await database.get<{ total: number }>(
    sql`select count(*) total from (${differing}) diff`,
  )
  const found = rows.slice(0, pageSize).map((row) => toDiff(row, from > to))
  const next = rows.length > pageSize ? found.at(-1)?.path : undefined
  return { files: found, total: counted?.total ?? 0, next }
}

function toDiff(row: DiffRow, isReverse: boolean): DiffFile {
  const older = row.oldDigest === null ? null : { digest: row.oldDigest, size: row.oldSize }
  const newer = row.newDigest === null ? null : { digest: row.newDigest, size: row.newSize }
  const [before, after] = isReverse ? [newer, older] : [older, newer]
  return { path: row.path, before, after }
}
