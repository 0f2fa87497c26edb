import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { fold } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { type FileList, type ListQuery, maxHits, type OrderName, orders } from '../list-query.ts'
import { among } from '../records.ts'
import {
  findMatches,
  idsIn,
  type ListRead,
  type ListScope,
  readRows,
  readScope,
  scanPage,
} from './find-matches.ts'
import { addPosition, type KnownList, ListCache } from './list-cache.ts'
import { PathSample } from './search-index.ts'

// Larger directories are read along the order instead of collected and sorted.
const maxSorted = 2000

interface KnownRead extends ListRead {
  known: KnownList
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
      const read = { transaction, query, scope, sample: this.#sample, known: cache.list(query) }
      const list = await this.#page(read)
      const rows = list.rows.slice(0, query.pageSize)
      return { ...list, rows, next: isLast(list, query) ? undefined : rows.at(-1) }
    })

  /**
   * An index provides the page where it has the order and the total is known. Otherwise the matching files are collected
   * and sorted, unless they are many: then they are read along the order, where the next match is mostly near.
   */
  async #page(read: KnownRead): Promise<FileList> {
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
    if (!after)
      return readRows(transaction, idsIn(ids.slice((page - 1) * pageSize, page * pageSize)), order)
    const following = sql`select id from ${name('files')} where id ${among(ids)} and ${order.after(after)}
      order by ${order.by} limit ${pageSize + 1}`
    return readRows(transaction, following, order)
  }

  async #matches(read: KnownRead) {
    const { transaction, query, scope, sample, known } = read
    if (!known.results) {
      if (query.search) await sample.refresh(transaction, scope.population)
      known.results = { ids: await findMatches(read) }
    }
    return known.results.ids
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
    if (row && (position > 0 || query.search || scope.directory))
      addPosition(known, order, { position, row })
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

  // A snapshot older than the cache is rare: it gets an empty one.
  async #cacheOf(transaction: SqlTransaction, lastChange: number): Promise<ListCache> {
    const known = this.#cache
    if (lastChange === known.lastChange) return known
    if (lastChange < known.lastChange) return new ListCache(lastChange)
    const next = await known.after(transaction, lastChange)
    // A concurrent call may have stored a newer cache.
    if (lastChange > this.#cache.lastChange) this.#cache = next
    return lastChange === this.#cache.lastChange ? this.#cache : next
  }
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
