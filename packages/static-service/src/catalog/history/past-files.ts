import { createHash } from 'node:crypto'
import { name, one, type Sql, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { changeNotFound, historyGone, notThere, versionNotFound } from '../../errors.ts'
import { fold } from '../../files/file-path.ts'
import { type ListQuery, orders, type SortedFile, sortKeysOf } from '../listing/list-query.ts'
import { all, among, below, columnNames, indexOf, jsonRow, type Page, type PageQuery, readPage } from '../records.ts'
import { type FileRow, fileColumns, fileRow, type RecordedState } from '../tables.ts'

// Files as a change left them: rows that it or a change before made, and that it or a change before did not end.

/** A file, or every file below a directory (the root is empty), as a change left them. */
type PastScope = { change: number } & ({ path: string } | { directory: string })

interface FilesQuery {
  /** The root is empty. */
  directory: string
  /** As this change left them; undefined: as they are now. */
  change?: number | undefined
  /** Files after this path. */
  after: string
  limit: number
}

const isIn = (scope: { path: string } | { directory: string }) =>
  'path' in scope ? sql`path = ${scope.path}` : below(scope.directory)

const rowsNow = (scope: Statement, columns = fileRow) => sql`select ${columns} from ${name('files')} where ${scope}`

const rowsAt = (scope: Statement, change: number, columns = fileRow) => sql`
  ${rowsNow(scope, columns)} and change_id <= ${change}
  union all
  select ${columns} from ${name('past_files')}
  where ${scope} and change_id <= ${change} and ended_by > ${change}`

/** Files below a directory, by path: past ones only if their rows are kept; see `requireKept`. */
export function filesAt(database: SqlTransaction, { directory, change, after, limit }: FilesQuery): Promise<FileRow[]> {
  const scope = sql`${below(directory)} and path > ${after}`
  const found = change === undefined ? rowsNow(scope) : rowsAt(scope, change)
  return database.all(sql`${found} order by path limit ${limit}`)
}

/** A page of these files, as `FileListing` selects and sorts the current ones. @throws {HttpError} as `requireKept`. */
export async function listAt(
  database: SqlTransaction,
  query: ListQuery & { change: number },
): Promise<Page<FileRow, SortedFile>> {
  const { change, after, sort, category, recursive, search, prefix: directory = '' } = query
  await requireKept(database, { directory, change })
  const conditions = [below(directory)]
  if (category) conditions.push(sql`category = ${category}`)
  // Past rows do not name their directory.
  const rest = sql`substr(path, ${directory === '' ? 1 : [...directory].length + 2})`
  if (recursive === false) conditions.push(sql`${indexOf}(${rest}, '/') = 0`)
  if (search) conditions.push(sql`path ${among(await findPaths(database, { directory, change }, search))}`)
  const listed = all(conditions)
  const page = after ? sql`${listed} and ${orders[sort].after(after)}` : listed
  return readPage<FileRow, SortedFile>(database, query, {
    from: sql`select ${fileRow} from (${rowsAt(page, change, columnNames(fileColumns))}) file order by ${orders[sort].by}`,
    all: sql`(${rowsAt(listed, change)}) file`,
    positionOf: sortKeysOf,
  })
}

// No index has past rows.
async function findPaths(database: SqlTransaction, scope: { directory: string; change: number }, search: string) {
  const [term, found] = [fold(search), [] as string[]]
  for await (const files of readTreePages((query) => filesAt(database, query), scope))
    for (const { path } of files) if (fold(path).includes(term)) found.push(path)
  return found
}

/** The file at a path as a change left it. @throws {HttpError} as `requireKept`, or `file_not_found`. */
export async function fileAt(
  database: SqlTransaction,
  { path, change }: { path: string; change: number },
): Promise<FileRow> {
  await requireMade(database, change)
  const row = await database.get<FileRow>(rowsAt(isIn({ path }), change))
  if (row) return row
  throw (await isGone(database, { path, change })) ? historyGone() : notThere(path, change)
}

/**
 * The file that a deploy, a restore or a revert ended at this time (ISO 8601 in UTC, with milliseconds) or later, if
 * that was the last end at its path.
 */
export function lastDeployed(
  database: SqlTransaction,
  { path, since }: { path: string; since: string },
): Promise<FileRow | undefined> {
  const past = name('past_files')
  return database.get<FileRow>(
    sql`select ${fileRow} from ${past} join ${name('changes')} on id = ended_by
      where path = ${path} and ended_by = (select max(ended_by) from ${past} where path = ${path})
        and ended_at >= ${since} and action in ('deploy', 'restore', 'revert')`,
  )
}

/** @throws {HttpError} `change_not_found` for a change that is still to come, or `history_gone` where a row is not kept. */
export async function requireKept(database: SqlTransaction, scope: PastScope) {
  await requireMade(database, scope.change)
  if (await isGone(database, scope)) throw historyGone()
}

async function requireMade(database: SqlTransaction, change: number) {
  if (change > (await readLastChange(database))) throw changeNotFound(change)
}

async function readLastChange(transaction: SqlTransaction): Promise<number> {
  return (await one<{ change: number }>(transaction, sql`select last_change change from ${name('catalog')}`)).change
}

/** Whether a file of the scope existed after the change, but its row is no longer kept. */
async function isGone(database: SqlTransaction, { change, ...scope }: PastScope): Promise<boolean> {
  const found = await database.get(
    sql`select 1 from (
        select path, before_change from ${name('changed_files')}
        where ${isIn(scope)} and change_id > ${change} and before_change <= ${change}
      ) ended
      where not exists (select 1 from ${name('past_files')} past
        where past.path = ended.path and past.change_id = ended.before_change)
      -- The entries that would tell are gone.
      union all select 1 from (select min(id) first from ${name('changes')}) entry
      where ${change} between 1 and entry.first - 1 and not exists (
        select 1 from ${name('versions')} where change_id = ${change} and files_kept = 1)
      ${'path' in scope ? sql`union all select 1 from ${forgotten(scope.path, change)}` : sql``}
      limit 1`,
  )
  return found !== undefined
}

// The last state of the path at that change, if it has been forgotten.
const forgotten = (path: string, change: number) => sql`(
  select before, after from ${name('changed_files')}
  where path = ${path} and change_id <= ${change} order by change_id desc limit 1
) last where before is null and after is null`

/**
 * The last change of a moment: a change id, an RFC 3339 instant or a version; 0: none.
 * @throws {HttpError} `change_not_found` for more digits than a change has, or `version_not_found`.
 */
export async function changeAt(database: SqlTransaction, moment: string): Promise<number> {
  if (/^\d+$/.test(moment)) {
    // Rounded, it would name another change.
    if (!Number.isSafeInteger(Number(moment))) throw changeNotFound(moment)
    return Number(moment)
  }
  const found = await database.get<{ id: number }>(
    moment.includes(':') // No version does.
      ? lastAt(utcOf(moment.toUpperCase()))
      : sql`select change_id id from ${name('versions')} where version = ${moment}`,
  )
  if (!found) throw versionNotFound(moment)
  return found.id
}

/** An RFC 3339 instant as dates are stored. The text of the year 10000, which an offset may lead to, would sort first. */
export const utcOf = (instant: string) => new Date(instant).toISOString().replace(/^\+.*/, '9999-12-31T23:59:59.999Z')

const lastAt = (time: string) =>
  sql`select coalesce(max(id), (select min(id) - 1 from ${name('changes')}), 0) id from ${name('changes')}
    where at = (select max(at) from ${name('changes')} where at <= ${time})`

/** A path with different contents; null: no file. */
export interface DiffFile {
  path: string
  before: Pick<RecordedState, 'digest' | 'size'> | null
  after: Pick<RecordedState, 'digest' | 'size'> | null
}

/**
 * Differences below a directory between the states that two changes left, by path; `to` undefined: the current one;
 * `after`: files after this path. Reads only rows that began or ended in between.
 * @throws {HttpError} as `requireKept`.
 */
export async function readDiff(
  database: SqlTransaction,
  query: PageQuery<string> & { directory: string; from: number; to: number | undefined },
): Promise<Page<DiffFile, string>> {
  const { directory, from, to = latest } = query
  for (const change of [from, to]) if (change !== latest) await requireKept(database, { directory, change })
  const [first, last] = [Math.min(from, to), Math.max(from, to)]
  const [older, newer] = from > to ? ['after', 'before'] : ['before', 'after']
  const [files, past] = [name('files'), name('past_files')]
  const isMade = sql`change_id > ${first} and change_id <= ${last}`
  const content = jsonRow({ digest: 'text', size: 'bigint' })
  const differing = sql`
    select path, max(older) as ${sql([older])}, max(newer) as ${sql([newer])}
    from (
      select path, ${content} older, null newer from ${past}
        where change_id <= ${first} and ended_by > ${first} and ended_by <= ${last}
      union all select path, null, ${content} from ${files} where ${isMade}
      union all select path, null, ${content} from ${past} where ${isMade} and ended_by > ${last}
    ) moved
    where ${below(directory)} group by path having max(older) is distinct from max(newer)`
  const all = sql`(${differing}) diff`
  const found = await readPage<DiffRow, string>(database, query, {
    from: sql`select * from ${all} where path > ${query.after ?? ''} order by path`,
    all,
    positionOf: ({ path }) => path,
  })
  const parse = (state: string | null) => state && JSON.parse(state)
  const rows = found.rows.map(({ path, before, after }) => ({ path, before: parse(before), after: parse(after) }))
  return { ...found, rows }
}

type DiffRow = Record<'before' | 'after', string | null> & { path: string }

const latest = Number.MAX_SAFE_INTEGER

export interface TreeState {
  files: number
  /** Strong entity tag over all names and digests: the same for every form of the tree. */
  etag: string
}

/** A file of a tree: its name is relative to the tree's directory. */
export type TreeFile = FileRow & { name: string }

/** The pages of a tree by path, and what they are together. */
export async function* readTreePages(
  readPage: (query: FilesQuery) => Promise<FileRow[]>,
  { directory, change }: { directory: string; change?: number | undefined },
): AsyncGenerator<TreeFile[], TreeState> {
  const hash = createHash('sha256')
  const start = directory === '' ? 0 : directory.length + 1
  for (let [files, after] = [0, '']; ; ) {
    const rows = await readPage({ directory, change, after, limit: pageFiles })
    const page = rows.map((row) => ({ ...row, name: row.path.slice(start) }))
    for (const { name, digest } of page) hash.update(`${name}\0${digest}\n`)
    files += page.length
    if (page.length > 0) yield page
    after = page.at(-1)?.path ?? ''
    if (page.length < pageFiles) return { files, etag: `"${hash.digest('hex').slice(0, 32)}"` }
  }
}

const pageFiles = 5000

/**
 * The state of the files below a directory after a change, or as they are now, and the last change that it shows.
 * @throws {HttpError} as `requireKept`.
 */
export const openTree = (
  database: Sql,
  { directory, at }: { directory: string; at?: number | undefined },
): Promise<TreeState & { change: number }> =>
  database.snapshot(async (transaction) => {
    if (at !== undefined) await requireKept(transaction, { directory, change: at })
    const tree = await readTreeState(transaction, directory, at)
    return { ...tree, change: at ?? (await readLastChange(transaction)) }
  })

/** The tree as a transaction sees it. */
export async function readTreeState(
  transaction: SqlTransaction,
  directory: string,
  change?: number,
): Promise<TreeState> {
  const pages = readTreePages((query) => filesAt(transaction, query), { directory, change })
  for (;;) {
    const { done, value } = await pages.next()
    if (done) return value
  }
}
