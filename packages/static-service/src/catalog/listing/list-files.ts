import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { fold, parentOf } from '../../files/file-path.ts'
import { type RecordedFile, readRecordedFiles } from '../history/change-log.ts'
import { type FileList, type ListQuery, maxHits, type OrderName, orders, type SortedFile } from '../list-query.ts'
import { among } from '../records.ts'
import type { FileRow, RecordedState } from '../tables.ts'
import { findMatches, idsIn, type ListRead, type ListScope, readRows, readScope, scanPage } from './find-matches.ts'
import { PathSample } from './search-index.ts'

/** A position in an order: a row, which need not exist any more, and the number of rows before it. */
interface SeekPosition {
  position: number
  row: FileRow
}

type Filter = Pick<ListQuery, 'search' | 'category' | 'prefix' | 'recursive'>

/** What is known of a list. */
interface KnownList {
  filter: Filter
  /** The ids of all its files, in order; undefined in it: more than are counted. */
  results?: { ids: number[] | undefined } | undefined
  /** In each order, by position: a page near one is not counted from the start. */
  positions: Map<OrderName, SeekPosition[]>
}

const maxLists = 64
const maxPositions = 100

// All lists together take milliseconds; with more, counting a page again is hardly slower.
const maxShifts = 2000

/** A change of the catalog. A standby that is promoted without the last changes gives their numbers again. */
type Moment = Pick<ListScope, 'lastChange' | 'changedAt'>

/** What is known of lists as of one change of the catalog. */
class ListCache {
  readonly moment: Moment
  /** By filter and sort. */
  readonly #lists = new Map<string, KnownList>()

  constructor(moment: Moment) {
    this.moment = moment
  }

  /** What is known of a list; callers add to it. */
  list({ search, category, prefix, recursive, sort }: ListQuery): KnownList {
    const key = JSON.stringify([search, category, prefix, recursive, sort])
    const known = this.#lists.get(key)
    if (known) return known
    if (this.#lists.size >= maxLists) this.#lists.clear()
    const list: KnownList = {
      filter: { search, category, prefix, recursive },
      positions: new Map(),
    }
    this.#lists.set(key, list)
    return list
  }

  /** The cache as of a later change that the transaction sees: keeps what the changes since then leave known. */
  async after(transaction: SqlTransaction, moment: Moment): Promise<ListCache> {
    const next = new ListCache(moment)
    const changed = await readChanged(transaction, { after: this.moment, upTo: moment.lastChange })
    if (changed) for (const [key, list] of this.#lists) next.#lists.set(key, afterChanges(list, changed))
    return next
  }
}

/** Adds a position to those known in an order. */
function addPosition({ positions }: KnownList, order: OrderName, found: SeekPosition): void {
  const known = positions.get(order) ?? []
  const at = known.findLastIndex((each) => each.position <= found.position)
  if (known[at]?.position === found.position) return
  positions.set(order, known.length < maxPositions ? known.toSpliced(at + 1, 0, found) : [found])
}

/** A changed file, as lists see it. */
type ChangedFile = RecordedFile & { folded: string }

// Keeps the results of a list without a changed file; positions move, whether their file still exists or not.
function afterChanges({ filter, results, positions }: KnownList, changed: ChangedFile[]) {
  const listed = (side: 'before' | 'after') =>
    changed.flatMap((file) => {
      const state = file[side]
      return isIn(filter, file, state) ? { path: file.path, ...state } : []
    })
  const [removed, added] = [listed('before'), listed('after')]
  const changes = removed.length + added.length
  const list: KnownList = {
    filter,
    results: changes > 0 ? undefined : results,
    positions: new Map(),
  }
  for (const [order, known] of positions) {
    if (changes * known.length > maxShifts) continue
    const countBefore = (files: SortedFile[], row: SortedFile) =>
      files.filter((file) => orders[order].precedes(file, row)).length
    const moved = known.map(({ position, row }) => ({
      position: position + countBefore(added, row) - countBefore(removed, row),
      row,
    }))
    list.positions.set(order, moved)
  }
  return list
}

function isIn(
  { search, category, prefix, recursive }: Filter,
  { path, folded }: ChangedFile,
  state: RecordedState | null,
): state is RecordedState {
  if (!state || (category && state.category !== category)) return false
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}

const [maxChanges, maxRead] = [1000, 1000]

/** The files of changes after one, up to another; undefined if they are too many, or not known, as the first may be. */
async function readChanged(
  transaction: SqlTransaction,
  { after: { lastChange: after, changedAt }, upTo }: { after: Moment; upTo: number },
): Promise<ChangedFile[] | undefined> {
  if (upTo === after || upTo - after > maxChanges) return undefined
  const span = sql`change_id > ${after} and change_id <= ${upTo}
    and exists (select 1 from ${name('changes')} where id = ${after} and at = ${changedAt}) limit ${maxRead + 1}`
  const files = await readRecordedFiles(transaction, span)
  if (files.length > maxRead || files.some(({ before, after }) => !before && !after)) return undefined
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
  readonly #sql: Pick<Sql, 'snapshot'>
  readonly #sample = new PathSample()
  #cache = new ListCache({ lastChange: 0, changedAt: '' })

  constructor(database: Pick<Sql, 'snapshot'>) {
    this.#sql = database
  }

  readonly list = ({ search, ...rest }: ListQuery): Promise<FileList> => {
    const before = this.#cache
    return this.#sql.snapshot(async (transaction) => {
      const query = { ...rest, search: search && fold(search) }
      const scope = await readScope(transaction, query)
      if (scope.isMissing) return { rows: [], total: 0, isExact: true }
      const cache = await this.#cacheOf(transaction, scope, before)
      const read = { transaction, query, scope, sample: this.#sample, known: cache.list(query) }
      const list = await this.#page(read)
      const { page, pageSize, after } = query
      const rows = list.rows.slice(0, pageSize)
      // An exact total ends a page by its number; otherwise a row too many, or a full page, shows that more may follow.
      const isLast =
        after || !list.isExact
          ? list.rows.length < pageSize + (after ? 1 : 0)
          : (page - 1) * pageSize + rows.length >= list.total
      return { ...list, rows, next: isLast ? undefined : rows.at(-1) }
    })
  }

  /**
   * An index provides the page where it has the order and the total is known. Otherwise the matching files are collected
   * and sorted, unless they are many: then they are read along the order, where the next match is mostly near.
   */
  async #page(read: KnownRead): Promise<FileList> {
    const { transaction, query, scope, sample, known } = read
    const { total } = scope
    const isIndexed = !scope.directory || query.sort === 'path' || query.sort === '-path'
    if (total !== undefined && (isIndexed || total > maxSorted))
      return { rows: await this.#scan(read), total, isExact: true }
    if (!known.results) {
      if (query.search) await sample.refresh(transaction, scope.population)
      known.results = { ids: await findMatches(read) }
    }
    const { ids } = known.results
    if (!ids) return { rows: await this.#scan(read), total: maxHits, isExact: false }
    return { rows: await this.#select(read, ids), total: ids.length, isExact: true }
  }

  /** Selects the page from all ids of a list; with `after`, one more row. */
  async #select({ transaction, query }: ListRead, ids: number[]): Promise<FileRow[]> {
    const { page, pageSize, after, sort } = query
    const order = orders[sort]
    if (!after) return readRows(transaction, idsIn(ids.slice((page - 1) * pageSize, page * pageSize)), order)
    const following = sql`select id from ${name('files')} where id ${among(ids)} and ${order.after(after)}
      order by ${order.by} limit ${pageSize + 1}`
    return readRows(transaction, following, order)
  }

  // Counts from the nearest known position; in the second half from the end where the total is known. After a file, one more.
  async #scan(read: KnownRead): Promise<FileRow[]> {
    const { query, scope, known } = read
    const { total } = scope
    const { pageSize, page, after } = query
    const sort = sortOf(query, scope)
    if (after) return scanPage(read, { order: sort, after, offset: 0, take: pageSize + 1 })
    const skip = (page - 1) * pageSize
    if (total !== undefined && skip >= total) return []
    const isBackwards = total !== undefined && skip > total / 2
    const order = isBackwards ? orders[sort].reversed : sort
    const take = isBackwards ? Math.min(pageSize, total - skip) : pageSize
    const position = isBackwards ? total - skip - take : skip
    const start = await this.#startOf(read, order, position)
    const offset = position - (start?.position ?? 0)
    const found = await scanPage(read, { order, from: start?.row, offset, take })
    const [row] = found
    if (row && (position > 0 || query.search || scope.directory)) addPosition(known, order, { position, row })
    return isBackwards ? found.reverse() : found
  }

  /** The nearest known position up to this one. If a later one is nearer, reads back from there to this position. */
  async #startOf(read: KnownRead, order: OrderName, position: number) {
    const known = read.known.positions.get(order) ?? []
    const at = known.findLastIndex((each) => each.position <= position)
    const [before, after] = [known[at], known[at + 1]]
    const distance = position - (before?.position ?? 0)
    if (!after || distance <= after.position - position) return before
    const [row] = await scanPage(read, {
      order: orders[order].reversed,
      after: after.row,
      offset: after.position - position - 1,
      take: 1,
    })
    return row ? { position, row } : before
  }

  // A snapshot older than the cache is rare: it gets an empty one. `before`: the cache when the snapshot was begun. Where
  // the snapshot is older than that, the database has lost changes.
  async #cacheOf(
    transaction: SqlTransaction,
    { lastChange, changedAt }: ListScope,
    before: ListCache,
  ): Promise<ListCache> {
    const moment = { lastChange, changedAt }
    if (this.#isOf(moment)) return this.#cache
    if (lastChange < this.#cache.moment.lastChange) {
      const empty = new ListCache(moment)
      if (this.#cache === before) this.#cache = empty
      return empty
    }
    const next = await this.#cache.after(transaction, moment)
    // A concurrent call may have stored a newer cache.
    if (lastChange >= this.#cache.moment.lastChange && !this.#isOf(moment)) this.#cache = next
    return this.#isOf(moment) ? this.#cache : next
  }

  #isOf({ lastChange, changedAt }: Moment) {
    const { moment } = this.#cache
    return moment.lastChange === lastChange && moment.changedAt === changedAt
  }
}

// The index of a directory has its files by name.
const sortOf = ({ sort, category, search }: ListQuery, { directory }: ListScope): OrderName => {
  if (directory?.isRecursive !== false || category || search) return sort
  if (sort === 'path') return 'name'
  return sort === '-path' ? '-name' : sort
}
