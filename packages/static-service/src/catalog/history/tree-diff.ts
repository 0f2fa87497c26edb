import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { below, type Page, type PageQuery, readPage } from '../records.ts'

/** `after`: files after this path. */
export interface DiffQuery extends PageQuery<string> {
  /** The root is empty. */
  directory: string
  /** The changes that produced the two states. */
  from: number
  to: number
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
  { directory, from, to, ...query }: DiffQuery,
): Promise<Page<DiffFile, string>> {
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
  const all = sql`(${differing}) diff`
  const found = await readPage<DiffRow, string>(database, query, {
    from: sql`select * from ${all} where path > ${query.after ?? ''} order by path`,
    all,
    positionOf: ({ path }) => path,
  })
  return { ...found, rows: found.rows.map((row) => toDiff(row, from > to)) }
}

function toDiff(row: DiffRow, isReverse: boolean): DiffFile {
  const older = row.oldDigest === null ? null : { digest: row.oldDigest, size: row.oldSize }
  const newer = row.newDigest === null ? null : { digest: row.newDigest, size: row.newSize }
  const [before, after] = isReverse ? [newer, older] : [older, newer]
  return { path: row.path, before, after }
}
