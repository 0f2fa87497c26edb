import type { Sql, SqlTransaction } from '@domains-and-files/persistence'
import { fold } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { type FileList, type ListQuery, maxHits, type OrderName, orders } from '../list-query.ts'
import {
  findMatches,
  idsIn,
  type ListScope,
  readRows,
  readScope,
  type Start,
  scanPage,
} from './find-matches.ts'
import {
  type ChangedFile,
  concern,
  type ListedFiles,
  readChangedFiles,
  shiftsIn,
  withFolded,
} from './list-changes.ts'
import { PathSample } from './search-index.ts'

// Larger directories are read along the order instead of collected and sorted.
const maxSorted = 2000

interface ListRead {
  transaction: SqlTransaction
  /** Its `search` is folded. */
  query: ListQuery
  scope: ListScope
  cache: ListCache
}

/** Pages of the stored files in a total order, each of one snapshot. What is known of a list is used until it changes. */
export class FileListing {
  readonly #sql: Pick<Sql, 'snapshot'>
  readonly #sample = new PathSample()
  #cache = new ListCache(0)

  constructor(database: Pick<Sql, 'snapshot'>) {
    this.#sql = database
  }

  readonly list = ({ search, ...rest }: ListQuery): Promise<FileList> =>
    this.#sql.snapshot(async (transaction) => {
      const query = { ...rest, search: search && fold(search) }
      const scope = await readScope(transaction, query)
      if (scope.isMissing) return { rows: [], total: 0, isExact: true }
      const cache = await this.#cacheOf(transaction, scope.lastChange)
      const list = await this.#page({ transaction, query, scope, cache })
      const rows = list.rows.slice(0, query.pageSize)
      return { ...list, rows, next: isLast(list, query) ? undefined : rows.at(-1) }
    })

  /**
   * An index provides the page where it has the order and the total is known. Otherwise the matching files are collected
   * and sorted, unless they are many: then they are read along the order, where the next match is mostly near.
   */
  async #page(read: ListRead): Promise<FileList> {
    const { query, scope } = read
    const { total } = scope
    const isIndexed = !scope.directory || query.sort === 'path' || query.sort === '-path'
    if (total !== undefined && (isIndexed || total > maxSorted))
      return { rows: await this.#scan(read), total, isExact: true }
    const ids = await this.#matches(read)
    if (!ids) return { rows: await this.#scan(read), total: maxHits, isExact: false }
    return { rows: await this.#select(read, ids), total: ids.length, isExact: true }
  }

  /** Selects the page from all ids of a list; with `after`, one more row. */
  async #select({ transaction, query }: ListRead, ids: number[]): Promise<FileRow[]> {
    const { page, pageSize, after, sort } = query
    const order = orders[sort]
    const slice = (from: number, to: number) =>
      readRows(transaction, idsIn(ids.slice(from, to)), order)
    if (!after) return slice((page - 1) * pageSize, page * pageSize)
    let [from, to] = [0, ids.length]
    while (from < to) {
      const middle = (from + to) >> 1
      const [row] = await slice(middle, middle + 1)
      if (row && order.precedes(after, row)) to = middle
      else from = middle + 1
    }
    return slice(from, from + pageSize + 1)
  }

  async #matches({ transaction, query, scope, cache }: ListRead) {
    const known = cache.results(query)
    if (known) return known.ids
    if (query.search) await this.#sample.refresh(transaction, scope.population)
    const ids = await findMatches(transaction, { query, scope, sample: this.#sample })
    cache.addResults(query, ids)
    return ids
  }

  // Counts from the nearest known position; in the second half from the end where the total is known. After a file, one more.
  async #scan(read: ListRead): Promise<FileRow[]> {
    const { query, scope, cache } = read
    const { total } = scope
    const { pageSize, page, after } = query
    const sort = sortOf(query, scope)
    const range = { order: sort, start: { after }, offset: 0, take: pageSize + 1 }
    if (after) return this.#rows(read, range)
    const skip = (page - 1) * pageSize
    if (total !== undefined && skip >= total) return []
    const isBackwards = total !== undefined && skip > total / 2
    const order = isBackwards ? orders[sort].reversed : sort
    const take = isBackwards ? Math.min(pageSize, total - skip) : pageSize
    const position = isBackwards ? total - skip - take : skip
    const start = await this.#startOf(read, order, position)
    const offset = position - (start?.position ?? 0)
    const found = await this.#rows(read, { order, start: { from: start?.row }, offset, take })
    const [row] = found
    if (row && (position > 0 || query.search || scope.directory)) {
      cache.addPosition(query, order, { position, row })
    }
    return isBackwards ? found.reverse() : found
  }

  /** The nearest known position up to this one. If a later one is nearer, reads back from there to this position. */
  async #startOf(read: ListRead, order: OrderName, position: number) {
    const { before, after } = read.cache.nearest(read.query, order, position)
    const distance = position - (before?.position ?? 0)
    if (!after || distance <= after.position - position) return before
    const [row] = await this.#rows(read, {
      order: orders[order].reversed,
      start: { after: after.row },
      offset: after.position - position - 1,
      take: 1,
    })
    return row ? { position, row } : before
  }

  async #rows({ transaction, query, scope }: ListRead, { order, ...range }: Range) {
    return scanPage(transaction, {
      ...{ query, scope, sample: this.#sample, order: orders[order] },
      ...range,
    })
  }

  // A snapshot older than the cache is rare: it gets an empty one.
  async #cacheOf(transaction: SqlTransaction, lastChange: number): Promise<ListCache> {
    const known = this.#cache
    if (lastChange === known.lastChange) return known
    if (lastChange < known.lastChange) return new ListCache(lastChange)
    const span = { after: known.lastChange, upTo: lastChange }
    const changed = await readChangedFiles(transaction, span)
    const next = changed ? known.after(lastChange, changed) : new ListCache(lastChange)
    // A concurrent call may have stored a newer cache.
    if (lastChange > this.#cache.lastChange) this.#cache = next
    return lastChange === this.#cache.lastChange ? this.#cache : next
  }
}

interface Range {
  order: OrderName
  start: Start
  offset: number
  take: number
}

/** Whether no file follows those of a page. */
const isLast = ({ rows, total, isExact }: FileList, { after, page, pageSize }: ListQuery) =>
  after || !isExact
    ? rows.length < pageSize + (after ? 1 : 0)
    : (page - 1) * pageSize + rows.length >= total

// The index of a directory has its files by name.
const sortOf = ({ sort, category, search }: ListQuery, { directory }: ListScope): OrderName => {
  if (directory?.isRecursive !== false || category || search) return sort
  if (sort === 'path') return 'name'
  return sort === '-path' ? '-name' : sort
}

/** A position in an order: a row, which need not exist any more, and the number of rows before it. */
interface SeekPosition {
  position: number
  row: FileRow
}

const maxResults = 64
const maxPositions = 1000

// These take milliseconds; with more, counting the page again is hardly slower.
const maxShifts = 50_000

/** Cached results and positions of lists, as of one change of the catalog. */
export class ListCache {
  readonly lastChange: number
  /** By the key of a list. */
  readonly #results = new Map<string, number[] | undefined>()
  /** By list and order: the next page near a known position is not counted from the start. */
  readonly #positions = new Map<string, SeekPosition[]>()
  #count = 0

  constructor(lastChange: number) {
    this.lastChange = lastChange
  }

  /** The cache after later changes: keeps results of lists without a changed file, and shifted positions. */
  after(lastChange: number, changed: ChangedFile[]): ListCache {
    const next = new ListCache(lastChange)
    const files = withFolded(changed)
    for (const [key, ids] of this.#results)
      if (!concern(files, JSON.parse(key))) next.#results.set(key, ids)
    if (files.length * this.#count > maxShifts) return next
    next.#count = this.#count
    for (const [key, positions] of this.#positions) {
      const { list, order }: PositionKey = JSON.parse(key)
      const shiftOf = shiftsIn(files, list, order)
      const shift = ({ position, row }: SeekPosition) => ({
        position: position + shiftOf(row),
        row,
      })
      next.#positions.set(key, positions.map(shift))
    }
    return next
  }

  /** The ids passed to `addResults` for this list, if any. */
  results(query: ListQuery): { ids: number[] | undefined } | undefined {
    const key = JSON.stringify(keyOf(query))
    return this.#results.has(key) ? { ids: this.#results.get(key) } : undefined
  }

  /** Caches the ids of all files of a list for its next pages; undefined: more than are counted. */
  addResults(query: ListQuery, ids: number[] | undefined): void {
    if (this.#results.size >= maxResults) this.#results.clear()
    this.#results.set(JSON.stringify(keyOf(query)), ids)
  }

  /** The last known position up to this one, and the first one after it. */
  nearest(query: ListQuery, order: OrderName, position: number) {
    const known = this.#positions.get(positionKey(query, order)) ?? []
    const at = known.findLastIndex((each) => each.position <= position)
    return { before: known[at], after: known[at + 1] }
  }

  addPosition(query: ListQuery, order: OrderName, found: SeekPosition): void {
    if (this.#count >= maxPositions) {
      this.#positions.clear()
      this.#count = 0
    }
    const key = positionKey(query, order)
    const known = this.#positions.get(key) ?? []
    const at = known.findLastIndex((each) => each.position <= found.position)
    if (known[at]?.position === found.position) return
    known.splice(at + 1, 0, found)
    this.#positions.set(key, known)
    this.#count += 1
  }
}

interface PositionKey {
  list: ListedFiles
  order: OrderName
}

const positionKey = (query: ListQuery, order: OrderName) =>
  JSON.stringify({ list: keyOf(query), order })

/** What determines the files of a list and their order, without the page. */
function keyOf({ category, search, prefix, recursive, sort }: ListQuery) {
  return [search, category, prefix, recursive, sort]
}
