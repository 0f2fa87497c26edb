import type { Database } from './database.ts'
import type { FileRow } from './file-row.ts'
import { fold, matchOf } from './grams.ts'
import type { Category } from './kind.ts'
import { fileColumns } from './queries.ts'

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
export const mostHits = 10_000

/** One page of the files, in a total order; equal times and sizes follow their paths, backwards in a descending sort. */
export function listFiles(db: Database, query: ListQuery): FileList {
  // One snapshot, so that the page and the total belong together.
  return db.transaction(() =>
    query.search ? searchFiles(db, query, query.search) : page(db, query),
  )()
}

function page(db: Database, query: ListQuery): FileList {
  const total = query.category ? countOf(db, query.category) : countAll(db)
  const skip = (query.page - 1) * query.pageSize
  if (skip >= total) return { rows: [], total, isExact: true }
  return { rows: scan(db, query, { total, skip }), total, isExact: true }
}

/**
 * Rare terms: all hits from the index, put in order here. Common ones: along the order itself, where the next hit is
 * never far, so that a page does not wait until a million hits are sorted.
 */
function searchFiles(db: Database, query: ListQuery, search: string): FileList {
  const term = fold(search)
  const { match, isExact } = matchOf(term, query.category)
  const check = isExact ? '' : 'and instr((select folded from files where id = grams.rowid), ?) > 0'
  const hits = db
    .prepare<unknown[], number>(`select rowid from grams where grams match ? ${check} limit ?`)
    .pluck()
    .all(match, ...(isExact ? [] : [term]), mostHits + 1)
  const skip = (query.page - 1) * query.pageSize
  if (hits.length > mostHits) {
    return { rows: scan(db, query, { skip, term }), total: mostHits, isExact: false }
  }
  const rows = skip >= hits.length ? [] : pick(db, query, hits)
  return { rows, total: hits.length, isExact: true }
}

function pick(db: Database, { sort, page: at, pageSize }: ListQuery, hits: number[]): FileRow[] {
  return db
    .prepare<unknown[], FileRow>(
      `select ${fileColumns} from files
       where id in (select id from files where id in (select value from json_each(?))
         order by ${orders[sort]} limit ? offset ?)
       order by ${orders[sort]}`,
    )
    .all(JSON.stringify(hits), pageSize, (at - 1) * pageSize)
}

interface Span {
  skip: number
  /** How many there are in all, where that is known: the second half is then reached from the end. */
  total?: number
  term?: string
}

// The ids come from an index alone; whole rows are read for the page only.
function scan(db: Database, query: ListQuery, { skip, total, term }: Span): FileRow[] {
  const { category, sort, pageSize } = query
  const isBackwards = total !== undefined && skip > total / 2
  const take = isBackwards ? Math.min(pageSize, total - skip) : pageSize
  const offset = isBackwards ? total - skip - take : skip
  const order = orders[isBackwards ? reversed(sort) : sort]
  const filters = [
    ...(category ? ['category = @category'] : []),
    ...(term === undefined ? [] : ['instr(folded, @term) > 0']),
  ]
  const where = filters.length > 0 ? `where ${filters.join(' and ')}` : ''
  return db
    .prepare<unknown[], FileRow>(
      `select ${fileColumns} from files
       where id in (select id from files ${where} order by ${order} limit @take offset @offset)
       order by ${orders[sort]}`,
    )
    .all({ category, term, take, offset })
}

const orders = {
  path: 'path',
  '-path': 'path desc',
  updated_at: 'updated_at, path',
  '-updated_at': 'updated_at desc, path desc',
  size: 'size, path',
  '-size': 'size desc, path desc',
}

function reversed(sort: ListQuery['sort']): ListQuery['sort'] {
  const opposite = sort.startsWith('-') ? sort.slice(1) : `-${sort}`
  return sorts.find((each) => each === opposite) ?? sort
}

const countAll = (db: Database) =>
  db.prepare<[], number>('select file_count from directories where id = 1').pluck().get() ?? 0

const countOf = (db: Database, category: Category) =>
  db
    .prepare<[string], number>('select file_count from categories where category = ?')
    .pluck()
    .get(category) ?? 0
