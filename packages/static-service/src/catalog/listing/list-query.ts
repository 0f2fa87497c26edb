import { dialect, list, name, one, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { nameOf } from '../../files/file-path.ts'
import type { Category } from '../../files/media-type.ts'
import { foldedPath } from '../migrations.ts'
import { all, below, indexOf } from '../records.ts'
import { type FileRow, fileRow } from '../tables.ts'
import { type PathSample, searchIndexes } from './search-index.ts'

export const sorts = ['path', '-path', 'updated_at', '-updated_at', 'size', '-size'] as const

/** Matches of a search are counted up to this number. */
export const maxHits = 10_000

export interface ListQuery {
  category?: Category | undefined
  search?: string | undefined
  /** Only files below this directory; empty or undefined: the root. */
  prefix?: string | undefined
  /** False: only files directly in the directory. */
  recursive?: boolean | undefined
  sort: (typeof sorts)[number]
  page: number
  /** The page after this file in the order of the list, instead of `page`. */
  after?: SortedFile | undefined
  page_size: number
}

/** Sort keys of files. Names sort as paths do: a list by name has the files of one directory. */
export type SortedFile = Pick<FileRow, 'path' | 'size' | 'updatedAt'>

export const sortKeysOf = ({ path, size, updatedAt }: SortedFile): SortedFile => ({ path, size, updatedAt })

/** A total order of files that an index provides. */
interface Order {
  /** The first column that it sorts by. */
  column: string
  by: Statement
  /** Condition for the rows that follow a given row. */
  after: (row: SortedFile) => Statement
  /** Condition for those rows and the given row itself. */
  from: (row: SortedFile) => Statement
  /** Whether one file precedes another. */
  precedes: (one: SortedFile, other: SortedFile) => boolean
  reversed: OrderName
}

/** The members of a file that have the columns; `name` is the end of its path. */
const members = { path: 'path', name: 'path', updated_at: 'updatedAt', size: 'size' } as const

type Column = keyof typeof members

const sortValue = (row: SortedFile, column: Column) => (column === 'name' ? nameOf(row.path) : row[members[column]])

export type OrderName = Column | `-${Column}`

/** The order that a list is read along: the index of a directory has its files by name. */
export function orderOf({ sort, category, search, recursive = true }: ListQuery): OrderName {
  if (recursive || category || search) return sort
  return sort === 'path' ? 'name' : sort === '-path' ? '-name' : sort
}

/** Equal times and sizes are ordered by path. */
export const orders = Object.fromEntries(
  (Object.keys(members) as Column[]).flatMap((column) => [
    [column, orderBy(column, { isDescending: false, reversed: `-${column}` })],
    [`-${column}`, orderBy(column, { isDescending: true, reversed: column })],
  ]),
) as Record<OrderName, Order>

function orderBy(column: Column, { isDescending, reversed }: { isDescending: boolean; reversed: OrderName }): Order {
  const columns: Column[] = members[column] === 'path' ? [column] : [column, 'path']
  const later = isDescending ? '<' : '>'
  const compare = (operator: string, row: SortedFile) =>
    sql`(${sql([columns.join(', ')])}) ${sql([operator])} (${list(columns.map((each) => sortValue(row, each)))})`
  const isLess = (one: SortedFile, other: SortedFile) => {
    const [value, otherValue] = [sortValue(one, column), sortValue(other, column)]
    return value === otherValue ? isBefore(one.path, other.path) : isBefore(value, otherValue)
  }
  return {
    column,
    by: sql([columns.map((each) => (isDescending ? `${each} desc` : each)).join(', ')]),
    after: (row) => compare(later, row),
    from: (row) => compare(`${later}=`, row),
    precedes: isDescending ? (one, other) => isLess(other, one) : isLess,
    reversed,
  }
}

// Orders text by its UTF-8 bytes, as both databases do: UTF-16 order differs for surrogates.
function isBefore(one: string | number, other: string | number): boolean {
  if (typeof one === 'number' || typeof other === 'number') return one < other
  if (!surrogate.test(one) && !surrogate.test(other)) return one < other
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

const surrogate = /[\ud800-\udfff]/

const files = name('files')
const directories = name('directories')
const catalog = name('catalog')
const categories = name('categories')

/** Counters about the files that a list can contain. */
export interface ListScope {
  /** The last change that the snapshot shows, and its time. */
  lastChange: number
  changedAt: string
  /** All files. */
  population: number
  /** Files of the directory that the list is restricted to; null: there is no such directory. */
  size: number | null
  /** Whether it is restricted to none. */
  isWhole: boolean
  /** Number of files in the list, if a counter has it. */
  total: number | undefined
}

/** Reads the counters for a query. */
export async function readScope(
  transaction: SqlTransaction,
  { prefix = '', recursive = true, category, search }: ListQuery,
): Promise<ListScope> {
  const isWhole = prefix === '' && recursive
  const subdirectories = sql`(select count(*) from ${directories} where parent = ${prefix})`
  const { ofCategory, ...counts } = await one<Omit<ListScope, 'isWhole' | 'total'> & { ofCategory: number | null }>(
    transaction,
    sql`select last_change "lastChange", last_changed_at "changedAt", root.file_count population,
      ${recursive ? sql`scope.file_count` : sql`scope.children - ${subdirectories}`} size,
      (select file_count from ${categories} where category = ${category ?? ''}) "ofCategory"
    from ${catalog}
      join ${directories} root on root.path = ''
      left join ${directories} scope on scope.path = ${prefix}`,
  )
  const counted = isWhole && category ? (ofCategory ?? 0) : (counts.size ?? 0)
  return { ...counts, isWhole, total: search || (category && !isWhole) ? undefined : counted }
}

/**
 * Restricts files to those of the query's directory: by its index or by that of paths, unless files are read along an
 * order that these indexes do not provide.
 */
function directoryFilter({ prefix = '', recursive = true }: ListQuery, order?: Order): Statement[] {
  if (!recursive) {
    const isIndexed = !order || order.column === 'name'
    return [sql`${isIndexed ? indexed : unindexed}directory = ${prefix}`]
  }
  const isIndexed = !order || order.column === 'path'
  return prefix === '' ? [] : [below(prefix, isIndexed ? indexed : unindexed)]
}

const indexed = sql``

// Unary plus: with such an index SQLite would read and sort the whole directory.
const unindexed = dialect({ sqlite: sql`+`, postgres: sql`` })

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

/** Ids of all files of a list, in order; null if there are more than are counted. */
export async function findMatches(read: ListRead): Promise<number[] | null> {
  const { transaction, query } = read
  const { from, conditions } = sourceOf(read)
  await searchIndexes[transaction.dialect].plan?.(transaction, 'index')
  const found = await transaction.get<{ count: number; ids: string | null }>(sql`
    with hits as materialized (
      select id, path, size, updated_at from ${from} where ${all(conditions)} limit ${maxHits + 1})
    select count(*) count, string_agg(cast(id as text), ',' order by ${orders[query.sort].by}) ids from hits`)
  if (!found || found.count > maxHits) return null
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
  const share = sample.shareOf(search, category)
  const { isWhole, size, population } = scope
  if (!isWhole && (size ?? 0) <= Math.max(fewFiles, share * population)) return unindexed
  if (share >= commonShare) return unindexed
  // PostgreSQL's planner combines it with the index of paths where that helps.
  const { from, condition } = searchIndexes[transaction.dialect].candidates(sample.rarest(search), category)
  return { from, conditions: [condition, ...conditions] }
}

/** Condition for paths that contain a folded text. */
const containsTerm = (folded: string): Statement => sql`${indexOf}(${foldedPath}, ${folded}) > 0`

/** Files in an order. `begin`: the condition for the first of them and those that follow; default: all. */
interface Range {
  order: Order
  begin?: Statement | undefined
  offset: number
  take: number
}

/** The files that follow in an order. */
export async function scanPage(read: ListRead, range: Range): Promise<FileRow[]> {
  if (!read.query.search) return readInOrder(read, range)
  // As many as contain the page of a term that a tenth of the files match, if these are spread over the order.
  const near = await readInOrder(read, range, minScanned + 10 * (range.offset + range.take))
  return near.length === range.take ? near : collectAll(read, range)
}

const minScanned = 20_000

/** Reads along the index of the order; a search reads a limited number of rows. */
async function readInOrder({ transaction, query }: ListRead, range: Range, maxRows = 0): Promise<FileRow[]> {
  const { order, begin, offset, take } = range
  const { search, category } = query
  const ofCategory = category ? [sql`category = ${category}`] : []
  const within = all([...(begin ? [begin] : []), ...ofCategory, ...directoryFilter(query, order)])
  await searchIndexes[transaction.dialect].plan?.(transaction, 'order')
  // SQLite would sort the rows again, and read them all first.
  const again = dialect({ sqlite: sql``, postgres: sql`order by ${order.by}` })
  const page = search
    ? sql`select id from (
        select ${compared} from ${files} where ${within} order by ${order.by} limit ${maxRows}
      ) near where ${containsTerm(search)} ${again} limit ${take} offset ${offset}`
    : sql`select id from ${files} where ${within} order by ${order.by} limit ${take} offset ${offset}`
  return readRows(transaction, page, order)
}

/** Collects all matches of a search, and sorts them. */
async function collectAll(read: ListRead, range: Range): Promise<FileRow[]> {
  const { transaction } = read
  const { order, begin, offset, take } = range
  const { from, conditions } = sourceOf(read)
  if (begin) conditions.push(begin)
  await searchIndexes[transaction.dialect].plan?.(transaction, 'index')
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
  dialect({
    sqlite: sql`select value id from json_each(${JSON.stringify(ids)})`,
    postgres: sql`select unnest(${ids}::bigint[]) id`,
  })

/** The files whose ids `page` selects as `id`, in this order. Sorted here: see `plan`, which keeps PostgreSQL from sorting. */
export async function readRows(transaction: SqlTransaction, page: Statement, { precedes }: Order): Promise<FileRow[]> {
  const rows = await transaction.all<FileRow>(
    sql`select ${fileRow} from (${page}) page join ${files} files on files.id = page.id`,
  )
  return rows.sort((one, other) => (precedes(one, other) ? -1 : 1))
}
