import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { fold, parentOf } from '../../files/file-path.ts'
import { type RecordedFile, readRecordedFiles } from '../history/change-log.ts'
import { among } from '../records.ts'
import type { FileRow, RecordedState } from '../tables.ts'
import {
  findMatches,
  idsIn,
  type ListQuery,
  type ListRead,
  type ListScope,
  maxHits,
  orderOf,
  orders,
  readRows,
  readScope,
  type SortedFile,
  scanPage,
} from './list-query.ts'
import { PathSample } from './search-index.ts'

export interface FileList {
  rows: FileRow[]
  total: number
  /** False: `total` is a lower bound. */
  isExact: boolean
  /** The last of these files, if more follow. */
  next?: SortedFile | undefined
}

/** A row of a list, which need not exist any more, and the number of rows before it. */
interface SeekPosition {
  position: number
  row: FileRow
}

/** What is known of a list. */
interface KnownList {
  query: ListQuery
  /** The ids of all its files, in order; null: more than are counted. */
  ids?: number[] | null | undefined
  /** Ascending: a page near one is not counted from the start. */
  positions: SeekPosition[]
}

const maxLists = 64
const maxPositions = 100

/** What is known of lists, by filter and sort, as of one change of the catalog. */
interface ListCache {
  lastChange: number
  /** A standby that is promoted without the last changes gives their numbers again. */
  changedAt: string
  lists: Map<string, KnownList>
}

const isOf = (cache: ListCache, { lastChange, changedAt }: Omit<ListCache, 'lists'>) =>
  cache.lastChange === lastChange && cache.changedAt === changedAt

/** What is known of a list; callers add to it. */
function knownOf({ lists }: ListCache, query: ListQuery): KnownList {
  const { search, category, prefix, recursive, sort } = query
  const key = JSON.stringify([search, category, prefix, recursive, sort])
  if (lists.size >= maxLists && !lists.has(key)) lists.clear()
  return lists.getOrInsertComputed(key, () => ({ query, positions: [] }))
}

function addPosition(known: KnownList, found: SeekPosition): void {
  const at = known.positions.findLastIndex((each) => each.position <= found.position)
  if (known.positions[at]?.position === found.position) return
  known.positions = known.positions.length < maxPositions ? known.positions.toSpliced(at + 1, 0, found) : [found]
}

/** A changed file, as lists see it. */
type ChangedFile = RecordedFile & { folded: string }

// Keeps the results of a list without a changed file; positions move, whether their file still exists or not.
function afterChanges({ query, ids, positions }: KnownList, changed: ChangedFile[]): KnownList {
  const { precedes } = orders[orderOf(query)]
  const listed = (side: 'before' | 'after') =>
    changed.flatMap((file) => {
      const state = file[side]
      return isIn(query, file, state) ? { path: file.path, ...state } : []
    })
  const [removed, added] = [listed('before'), listed('after')]
  const changes = removed.length + added.length
  const countBefore = (files: SortedFile[], row: SortedFile) => files.filter((file) => precedes(file, row)).length
  const moved = positions.map(({ position, row }) => {
    return { position: position + countBefore(added, row) - countBefore(removed, row), row }
  })
  return { query, ids: changes > 0 ? undefined : ids, positions: moved }
}

function isIn(
  { search, category, prefix, recursive }: ListQuery,
  { path, folded }: ChangedFile,
  state: RecordedState | null,
): state is RecordedState {
  if (!state || (category && state.category !== category)) return false
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}

// With more of them, moving the positions of all lists would take long.
const maxChanged = 200

/** The files of changes after one, up to another; undefined if they are too many, or not known, as the first may be. */
async function readChanged(
  transaction: SqlTransaction,
  { lastChange: after, changedAt }: ListCache,
  upTo: number,
): Promise<ChangedFile[] | undefined> {
  if (upTo <= after || upTo - after > maxChanged) return undefined
  const span = sql`change_id > ${after} and change_id <= ${upTo}
    and exists (select 1 from ${name('changes')} where id = ${after} and at = ${changedAt}) limit ${maxChanged + 1}`
  const files = await readRecordedFiles(transaction, span)
  if (files.length > maxChanged || files.some(({ before, after }) => !before && !after)) return undefined
  // A slice of a change, or files of a restore, have numbers without rows.
  const changes = new Set(files.map(({ changeId }) => changeId))
  if (changes.size !== upTo - after) return undefined
  return files.map((file) => ({ ...file, folded: fold(file.path) }))
}

// Larger directories are read along the order instead of collected and sorted.
const maxSorted = 2000

interface KnownRead extends ListRead {
  known: KnownList
}

/** Pages of the stored files in a total order, each of one snapshot. What is known of a list is used until it changes. */
export class FileListing {
  readonly #sql: Sql
  readonly #sample = new PathSample()
  #cache: ListCache = { lastChange: 0, changedAt: '', lists: new Map() }

  constructor(database: Sql) {
    this.#sql = database
  }

  readonly list = ({ search, ...rest }: ListQuery): Promise<FileList> => {
    return this.#sql.snapshot(async (transaction) => {
      const query = { ...rest, search: search && fold(search) }
      const scope = await readScope(transaction, query)
      if (scope.size === null) return { rows: [], total: 0, isExact: true }
      const cache = await this.#cacheOf(transaction, scope)
      const list = await this.#page({ transaction, query, scope, sample: this.#sample, known: knownOf(cache, query) })
      const rows = list.rows.slice(0, query.page_size)
      return { ...list, rows, next: list.rows.length > rows.length ? rows.at(-1) : undefined }
    })
  }

  // What is known as of the snapshot. Of concurrent calls the newest snapshot counts.
  async #cacheOf(transaction: SqlTransaction, { lastChange, changedAt }: ListScope) {
    const now: ListCache = { lastChange, changedAt, lists: new Map() }
    if (isOf(this.#cache, now)) return this.#cache
    const known = this.#cache
    const changed = await readChanged(transaction, known, lastChange)
    if (changed) for (const [key, list] of known.lists) now.lists.set(key, afterChanges(list, changed))
    if (isOf(this.#cache, now)) return this.#cache
    if (lastChange >= this.#cache.lastChange) this.#cache = now
    return now
  }

  /**
   * An index provides the page where it has the order and the total is known. Otherwise the matching files are collected
   * and sorted, unless they are many: then they are read along the order, where the next match is mostly near.
   */
  async #page(read: KnownRead): Promise<FileList> {
    const { transaction, query, scope, sample, known } = read
    const { total } = scope
    const isIndexed = scope.isWhole || query.sort === 'path' || query.sort === '-path'
    if (total !== undefined && (isIndexed || total > maxSorted))
      return { rows: await this.#scan(read), total, isExact: true }
    if (known.ids === undefined && query.search) await sample.refresh(transaction, scope.population)
    const ids = known.ids === undefined ? await findMatches(read) : known.ids
    known.ids = ids
    if (!ids) return { rows: await this.#scan(read), total: maxHits, isExact: false }
    return { rows: await this.#select(read, ids), total: ids.length, isExact: true }
  }

  /** Selects the page, and one more row, from all ids of a list. */
  async #select({ transaction, query }: ListRead, ids: number[]): Promise<FileRow[]> {
    const { page, page_size: pageSize, after, sort } = query
    const order = orders[sort]
    if (!after) return readRows(transaction, idsIn(ids.slice((page - 1) * pageSize, page * pageSize + 1)), order)
    const following = sql`select id from ${name('files')} where id ${among(ids)} and ${order.after(after)}
      order by ${order.by} limit ${pageSize + 1}`
    return readRows(transaction, following, order)
  }

  // The page, and one more row. Counts from the nearest known position.
  async #scan(read: KnownRead): Promise<FileRow[]> {
    const { query, scope, known } = read
    const { page_size: pageSize, page, after } = query
    const [order, take] = [orders[orderOf(query)], pageSize + 1]
    if (after) return scanPage(read, { order, begin: order.after(after), offset: 0, take })
    const position = (page - 1) * pageSize
    if (scope.total !== undefined && position >= scope.total) return []
    const start = await this.#startOf(read, position)
    const begin = start.row && order.from(start.row)
    const found = await scanPage(read, { order, begin, offset: position - start.position, take })
    const [row] = found
    if (row && (position > 0 || query.search || !scope.isWhole)) addPosition(known, { position, row })
    return found
  }

  /** The nearest known position up to this one. If a later one is nearer, reads back from there to this position. */
  async #startOf(read: KnownRead, position: number): Promise<{ position: number; row: FileRow | undefined }> {
    const { known, scope, query } = read
    const { positions } = known
    const before = positions.findLast((each) => each.position <= position) ?? { position: 0, row: undefined }
    const end = scope.total === undefined ? undefined : { position: scope.total, row: undefined }
    const after = positions.find((each) => each.position > position) ?? end
    if (!after || position - before.position <= after.position - position) return before
    const order = orders[orders[orderOf(query)].reversed]
    const offset = after.position - position - 1
    const [row] = await scanPage(read, { order, begin: after.row && order.after(after.row), offset, take: 1 })
    return row ? { position, row } : before
  }
}
