import { dialect, name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { type ListQuery, maxHits, type Order, type OrderName, orders, type SortedFile } from '../list-query.ts'
import { foldedPath } from '../migrations.ts'
import { all, below } from '../records.ts'
import { type FileRow, fileRow } from '../tables.ts'
import { type PathSample, searchIndexes } from './search-index.ts'

const files = name('files')
const directories = name('directories')

/** Counters about the files that a list can contain. */
export interface ListScope {
  /** The last change that the snapshot shows, and its time. */
  lastChange: number
  changedAt: string
  /** All files. */
  population: number
  /** The directory that the list is restricted to; undefined: none. */
  directory: { isRecursive: boolean; size: number } | undefined
  /** Number of files in the list, if a counter has it. */
  total: number | undefined
  isMissing: boolean
}

interface ScopeRow {
  lastChange: number
  changedAt: string
  population: number
  ofCategory: number | null
  size: number | null
  children: number | null
  subdirectories: number
}

/** Reads the counters for a query. */
export async function readScope(
  transaction: SqlTransaction,
  { prefix = '', recursive = true, category, search }: ListQuery,
): Promise<ListScope> {
  const row = await transaction.get<ScopeRow>(sql`
    select last_change "lastChange", last_changed_at "changedAt", root.file_count population, scope.file_count size, scope.children,
      (select file_count from ${name('categories')} where category = ${category ?? ''}) "ofCategory",
      ${recursive ? sql`0` : sql`(select count(*) from ${directories} where parent = ${prefix})`} subdirectories
    from ${name('catalog')}
      join ${directories} root on root.path = ''
      left join ${directories} scope on scope.path = ${prefix}`)
  if (!row) throw new Error('the catalog has no row of counts')
  const { lastChange, changedAt, population, size, children, subdirectories } = row
  const isWhole = prefix === '' && recursive
  const ofDirectory = recursive ? (size ?? 0) : (children ?? 0) - subdirectories
  const counted = isWhole ? (category ? (row.ofCategory ?? 0) : population) : ofDirectory
  return {
    lastChange,
    changedAt,
    population,
    directory: isWhole ? undefined : { isRecursive: recursive, size: ofDirectory },
    total: search || (category && !isWhole) ? undefined : counted,
    isMissing: size === null,
  }
}

/**
 * Restricts files to those of the query's directory: by its index or by that of paths, unless files are read along an
 * order that these indexes do not provide.
 */
export function directoryFilter({ prefix = '', recursive = true }: ListQuery, order?: Order): Statement[] {
  if (!recursive) {
    const isIndexed = !order || order.column === 'name'
    return [sql`${isIndexed ? indexed : unindexed}directory = ${prefix}`]
  }
  const isIndexed = !order || order.column === 'path'
  return prefix === '' ? [] : [below(prefix, isIndexed ? indexed : unindexed)]
}

const indexed = sql``

// Unary plus: with such an index SQLite would read and sort the whole directory.
const unindexed = sql`${dialect({ sqlite: sql`+`, postgres: sql`` })}`

// With runs of more files than this share, reading all files until enough match is faster than the index.
const commonShare = 0.3

// Up to this many files are compared with the term one by one.
const fewFiles = 5000

export interface ListRead {
  transaction: SqlTransaction
  /** Its `search` is folded. */
  query: ListQuery
  scope: ListScope
  sample: PathSample
}

/** Ids of all files of a list, in order; undefined if there are more than are counted. */
export async function findMatches(read: ListRead): Promise<number[] | undefined> {
  const { transaction, query } = read
  const { from, conditions } = sourceOf(read)
  await searchIndexes[transaction.dialect].plan(transaction, 'index')
  const found = await transaction.get<{ count: number; ids: string | null }>(sql`
    with hits as materialized (
      select id, path, size, updated_at from ${from} where ${all(conditions)} limit ${maxHits + 1})
    select count(*) count, string_agg(cast(id as text), ',' order by ${orders[query.sort].by}) ids from hits`)
  if (!found || found.count > maxHits) return undefined
  return found.ids?.split(',').map(Number) ?? []
}

/** The files to compare: from the index of runs if that has the fewest candidates. */
function sourceOf({ transaction, query, scope, sample }: ListRead) {
  const { category, search } = query
  const conditions = directoryFilter(query)
  if (category) conditions.push(sql`category = ${category}`)
  const unindexed = { from: files, conditions }
  if (!search) return unindexed
  conditions.push(containsTerm(search))
  const { directory } = scope
  const share = sample.shareOf(search, category)
  if (directory && directory.size <= Math.max(fewFiles, share * scope.population)) return unindexed
  if (share >= commonShare) return unindexed
  // PostgreSQL's planner combines it with the index of paths where that helps.
  const { from, condition } = searchIndexes[transaction.dialect].candidates(sample.rarest(search), category)
  return { from, conditions: [condition, ...conditions] }
}

/** Condition for paths that contain a folded text. */
export const containsTerm = (folded: string): Statement =>
  sql`${dialect({
    sqlite: sql`instr(${foldedPath}, ${folded}) > 0`,
    postgres: sql`strpos(${foldedPath}, ${folded}) > 0`,
  })}`

/** Files in an order. `from`: the first row; `after`: the row before it; neither: the start of the order. */
export interface Range {
  order: OrderName
  from?: SortedFile | undefined
  after?: SortedFile | undefined
  offset: number
  take: number
}

/** The files that follow in an order. */
export async function scanPage(read: ListRead, range: Range): Promise<FileRow[]> {
  const { search } = read.query
  if (!search) return readInOrder(read, range)
  // As many as contain the page of a term that a tenth of the files match, if these are spread over the order.
  const near = await readInOrder(read, range, minScanned + 10 * (range.offset + range.take))
  return near.length === range.take ? near : collectAll(read, range, search)
}

const minScanned = 20_000

/** Reads along the index of the order; a search reads a limited number of rows. */
async function readInOrder({ transaction, query }: ListRead, range: Range, maxRows?: number): Promise<FileRow[]> {
  const { offset, take } = range
  const order = orders[range.order]
  const within = all(rangeConditions(query, range, order))
  await searchIndexes[transaction.dialect].plan(transaction, 'order')
  if (query.search === undefined || !maxRows) {
    const page = sql`select id from ${files} where ${within}
      order by ${order.by} limit ${take} offset ${offset}`
    return readRows(transaction, page, order)
  }
  // SQLite would sort the rows again, and read them all first.
  const again = dialect({ sqlite: sql``, postgres: sql`order by ${order.by}` })
  const page = sql`select id from (
      select ${compared} from ${files} where ${within} order by ${order.by} limit ${maxRows}
    ) near where ${containsTerm(query.search)} ${again} limit ${take} offset ${offset}`
  return readRows(transaction, page, order)
}

/** Collects all matches of a search by its index, and sorts them. */
async function collectAll({ transaction, query, sample }: ListRead, range: Range, folded: string): Promise<FileRow[]> {
  const { offset, take } = range
  const order = orders[range.order]
  const index = searchIndexes[transaction.dialect]
  const { from, condition } = index.candidates(sample.rarest(folded), query.category)
  const conditions = [condition, containsTerm(folded), ...rangeConditions(query, range)]
  await index.plan(transaction, 'index')
  const page = sql`with hits as materialized (
      select id, path, name, size, updated_at from ${from} where ${all(conditions)})
    select id from hits order by ${order.by} limit ${take} offset ${offset}`
  return readRows(transaction, page, order)
}

// The index of SQLite has the compared columns; PostgreSQL sorts again.
const compared = dialect({
  sqlite: sql`id, folded, path`,
  postgres: sql`id, folded, path, name, size, updated_at`,
})

/** Selects these ids as `id`. */
export const idsIn = (ids: readonly number[]): Statement =>
  sql`${dialect({
    sqlite: sql`select value id from json_each(${JSON.stringify(ids)})`,
    postgres: sql`select unnest(${ids}::bigint[]) id`,
  })}`

/** The files whose ids `page` selects as `id`, in this order. Sorted here: see `plan`, which keeps PostgreSQL from sorting. */
export async function readRows(transaction: SqlTransaction, page: Statement, { precedes }: Order): Promise<FileRow[]> {
  const rows = await transaction.all<FileRow>(
    sql`select ${fileRow} from (${page}) page join ${files} files on files.id = page.id`,
  )
  return rows.sort((one, other) => (precedes(one, other) ? -1 : 1))
}

/** `along`: the order that files are read along. */
function rangeConditions(query: ListQuery, { order, from, after }: Range, along?: Order) {
  return [
    ...(from ? [orders[order].from(from)] : []),
    ...(after ? [orders[order].after(after)] : []),
    ...(query.category ? [sql`category = ${query.category}`] : []),
    ...directoryFilter(query, along),
  ]
}
