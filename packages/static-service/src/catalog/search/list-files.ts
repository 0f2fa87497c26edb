import type { Statement } from 'better-sqlite3'
import type { FileRow } from '../../files/file-record.ts'
import type { Category } from '../../files/media-type.ts'
import type { Database } from '../database.ts'
import { fileColumns } from '../queries.ts'
import { SeekCache } from './seek-cache.ts'
import { TrigramFrequency } from './trigram-frequency.ts'
import { fold, matchOf } from './trigrams.ts'

export const sorts = ['path', '-path', 'updated_at', '-updated_at', 'size', '-size'] as const

export interface ListQuery {
  category?: Category | undefined
  search?: string | undefined
  sort: (typeof sorts)[number]
  page: number
  pageSize: number
}

export interface FileList {
  rows: FileRow[]
  total: number
  /** False when there are more than `total`. */
  isExact: boolean
}

/** Hits of a search are counted up to here. */
export const maxHits = 10_000

const mostSearches = 64

// As searches compare it: kept only where it is not the path in capitals.
const folded = 'coalesce(folded, upper(path))'

/** Pages of the files, in a total order; equal times and sizes follow their paths, backwards in a descending sort. */
export class FileListing {
  readonly #db: Database
  readonly #sample: TrigramFrequency
  readonly #landmarks = new SeekCache()
  /** What was found since the last change, so that a next page need not search again. */
  readonly #found = new Map<string, number[]>()
  readonly #statements = new Map<string, Statement>()

  constructor(db: Database) {
    this.#db = db
    this.#sample = new TrigramFrequency(db)
  }

  list(query: ListQuery): FileList {
    // One snapshot, so that the page and the total belong together, and the landmarks to both.
    return this.#db.transaction(() => {
      const isNew = this.#landmarks.enter(Number(this.#one('pragma data_version')))
      if (isNew || this.#found.size > mostSearches) this.#found.clear()
      return query.search ? this.#search(query, fold(query.search)) : this.#page(query)
    })()
  }

  #page(query: ListQuery): FileList {
    const total = Number(
      query.category
        ? (this.#one('select file_count from categories where category = @category', {
            category: query.category,
          }) ?? 0)
        : this.#one('select file_count from directories where id = 1'),
    )
    const skip = (query.page - 1) * query.pageSize
    const rows = skip >= total ? [] : this.#scan(query, { total, skip })
    return { rows, total, isExact: true }
  }

  /**
   * Rare terms: all hits from the index, put in order here. Common ones: along the order itself, where the next hit is
   * mostly not far, so that a page does not wait until a million hits are sorted.
   */
  #search(query: ListQuery, term: string): FileList {
    const skip = (query.page - 1) * query.pageSize
    const asked = JSON.stringify([term, query.category, query.sort])
    const ids = this.#found.get(asked) ?? this.#hits(query, term)
    this.#found.set(asked, ids)
    if (ids.length <= maxHits) {
      const rows = this.#rows(ids.slice(skip, skip + query.pageSize), query.sort)
      return { rows, total: ids.length, isExact: true }
    }
    return { rows: this.#scan(query, { skip, term }), total: maxHits, isExact: false }
  }

  /** In their order, or, when they are too many, one more than are counted, in none. */
  #hits({ category, sort }: ListQuery, term: string): number[] {
    this.#sample.refresh()
    const shareOf = (gram: string) => this.#sample.shareOf(gram)
    const { match, isExact } = matchOf({ folded: term, category, shareOf })
    const check = isExact ? '' : `and instr(${folded}, @term) > 0`
    const ids = this.#one(
      `with hits as materialized (
         select id, path, size, updated_at from grams cross join files on id = grams.rowid
         where grams match @match ${check} limit ${maxHits + 1})
       select json_group_array(id) from (select id from hits order by ${orders[sort].by})`,
      { match, term },
    )
    return JSON.parse(String(ids)) as number[] // Written just above.
  }

  // Counted from the nearest place that is known; the second half from the end, where the total is known.
  #scan(query: ListQuery, { skip, total, term }: Span): FileRow[] {
    const { category, sort, pageSize } = query
    const isBackwards = total !== undefined && skip > total / 2
    const order = orders[isBackwards ? orders[sort].reversed : sort]
    const take = isBackwards ? Math.min(pageSize, total - skip) : pageSize
    const position = isBackwards ? total - skip - take : skip
    const scale = JSON.stringify([order.by, category, term])
    const start = this.#landmarks.before(scale, position)
    const filters = [
      ...(category ? ['category = @category'] : []),
      ...(term === undefined ? [] : [`instr(${folded}, @term) > 0`]),
      ...(start ? [order.from] : []),
    ]
    const where = filters.length > 0 ? `where ${filters.join(' and ')}` : ''
    // The ids come from an index alone; whole rows are read for the page only.
    const ids = this.#prepare(
      `select id from files ${where} order by ${order.by} limit @take offset @offset`,
    )
      .pluck()
      .all({ ...start?.row, category, term, take, offset: position - (start?.position ?? 0) })
    const rows = this.#rows(ids, sort)
    const row = isBackwards ? rows.at(-1) : rows[0]
    if (row && (position > 0 || term)) this.#landmarks.add(scale, { position, row })
    return rows
  }

  #rows(ids: unknown[], sort: ListQuery['sort']): FileRow[] {
    return this.#prepare<FileRow>(
      `select ${fileColumns} from files where id in (select value from json_each(@ids))
       order by ${orders[sort].by}`,
    ).all({ ids: JSON.stringify(ids) })
  }

  #one(sql: string, values: Record<string, unknown> = {}): unknown {
    return this.#prepare(sql).pluck().get(values)
  }

  // Each question has a few dozen forms: they are kept as they come.
  #prepare<Row = unknown>(sql: string): Statement<[Record<string, unknown>], Row> {
    const known = this.#statements.get(sql) ?? this.#db.prepare(sql)
    this.#statements.set(sql, known)
    return known as Statement<[Record<string, unknown>], Row> // The text says what comes.
  }
}

interface Span {
  skip: number
  /** How many there are in all, where that is known. */
  total?: number
  term?: string
}

interface Order {
  by: string
  /** From a row on, itself included. */
  from: string
  reversed: ListQuery['sort']
}

const orders: Record<ListQuery['sort'], Order> = {
  path: { by: 'path', from: 'path >= @path', reversed: '-path' },
  '-path': { by: 'path desc', from: 'path <= @path', reversed: 'path' },
  updated_at: {
    by: 'updated_at, path',
    from: '(updated_at, path) >= (@updatedAt, @path)',
    reversed: '-updated_at',
  },
  '-updated_at': {
    by: 'updated_at desc, path desc',
    from: '(updated_at, path) <= (@updatedAt, @path)',
    reversed: 'updated_at',
  },
  size: { by: 'size, path', from: '(size, path) >= (@size, @path)', reversed: '-size' },
  '-size': {
    by: 'size desc, path desc',
    from: '(size, path) <= (@size, @path)',
    reversed: 'size',
  },
}
