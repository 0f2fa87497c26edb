import type { Statement } from 'better-sqlite3'
import type { FileRow } from '../../../files/file-record.ts'
import { fold } from '../../fold.ts'
import { type FileList, keyOf, type ListQuery, maxHits } from '../../list-query.ts'
import { SeekCache } from '../../seek-cache.ts'
import type { Database } from '../database.ts'
import { fileColumns } from '../queries.ts'
import { type Filter, filterByPath, orders, type Scope } from './list-query.ts'
import { TrigramFrequency } from './trigram-frequency.ts'
import { matchOf } from './trigrams.ts'

// More files of a directory are read along the order instead of collected and sorted.
const maxSorted = 2000

const maxCachedResults = 64

// The path as searches compare it; stored only where it differs from the path in upper case.
const folded = 'coalesce(folded, upper(path))'

const everything: Filter = { conditions: [], values: {} }

/** Pages of the stored files in a total order. */
export class FileListing {
  readonly #db: Database
  readonly #frequency: TrigramFrequency
  readonly #seekCache = new SeekCache()
  /** Ids of complete results since the last change, for their next pages. */
  readonly #results = new Map<string, number[]>()
  readonly #statements = new Map<string, Statement>()

  constructor(db: Database) {
    this.#db = db
    this.#frequency = new TrigramFrequency(db)
  }

  list(query: ListQuery): FileList {
    // One snapshot for the page, the total and the cached positions.
    return this.#db.transaction(() => {
      const isNew = this.#seekCache.enter(Number(this.#one('pragma data_version')))
      if (isNew || this.#results.size > maxCachedResults) this.#results.clear()
      const scope = this.#scopeOf(query)
      if (!scope) return { rows: [], total: 0, isExact: true }
      return this.#page(query, scope === 'all' ? undefined : scope)
    })()
  }

  /**
   * An index provides the page where it has the order and the total is known. Otherwise the matching files are collected
   * and sorted, unless they are many: then they are read along the order, where the next match is mostly near.
   */
  #page(query: ListQuery, scope: Scope | undefined): FileList {
    const skip = (query.page - 1) * query.pageSize
    const total = this.#totalOf(query, scope)
    const isIndexed = !scope || query.sort === 'path' || query.sort === '-path'
    if (total !== undefined && (isIndexed || total > maxSorted)) {
      const rows = skip >= total ? [] : this.#scan(query, { scope, total, skip })
      return { rows, total, isExact: true }
    }
    const ids = this.#matches(query, scope)
    if (ids.length <= maxHits) {
      const rows = this.#rows(ids.slice(skip, skip + query.pageSize), query.sort)
      return { rows, total: ids.length, isExact: true }
    }
    return { rows: this.#scan(query, { scope, skip }), total: maxHits, isExact: false }
  }

  /** Undefined when there is no such directory. */
  #scopeOf({ prefix = '', recursive = true }: ListQuery): Scope | 'all' | undefined {
    if (prefix === '' && recursive) return 'all'
    const directory = this.#prepare<{ id: number; file_count: number; children: number }>(
      'select id, file_count, children from directories where path = @prefix',
    ).get({ prefix })
    if (!directory) return undefined
    const byPath = filterByPath(prefix, recursive)
    if (recursive) return { byPath, direct: byPath, isRecursive: true, size: directory.file_count }
    const values = { directory: directory.id }
    const subdirectories = this.#one(
      'select count(*) from directories where parent = @directory',
      values,
    )
    return {
      byPath,
      direct: { conditions: ['directory = @directory'], values },
      isRecursive: false,
      size: directory.children - Number(subdirectories),
    }
  }

  /** Number of files where a counter has it. */
  #totalOf({ category, search }: ListQuery, scope: Scope | undefined): number | undefined {
    if (search || (scope && category)) return undefined
    if (scope) return scope.size
    if (!category) return Number(this.#one('select file_count from directories where id = 1'))
    const count = this.#one('select file_count from categories where category = @category', {
      category,
    })
    return Number(count ?? 0)
  }

  /** Ids in their order; if there are too many, one more than are counted, unordered. */
  #matches(query: ListQuery, scope: Scope | undefined): number[] {
    const key = JSON.stringify(keyOf(query))
    const known = this.#results.get(key)
    if (known) return known
    const { from, conditions, values } = this.#sourceOf(query, scope)
    const ids = this.#one(
      `with hits as materialized (
         select id, path, size, updated_at from ${from}
         where ${conditions.join(' and ')} limit ${maxHits + 1})
       select json_group_array(id) from (select id from hits order by ${orders[query.sort].by})`,
      values,
    )
    const found = JSON.parse(String(ids)) as number[] // SQLite wrote it just above.
    this.#results.set(key, found)
    return found
  }

  // The index of trigrams or that of the directory, whichever has fewer candidates.
  #sourceOf({ category, search }: ListQuery, scope: Scope | undefined): Filter & { from: string } {
    const { conditions, values } = scope?.direct ?? everything
    const ofCategory = category ? ['category = @category'] : []
    if (!search) {
      return {
        from: 'files',
        conditions: [...conditions, ...ofCategory],
        values: { ...values, category },
      }
    }
    const term = fold(search)
    const contains = `instr(${folded}, @term) > 0`
    this.#frequency.refresh()
    const shareOf = (trigram: string) => this.#frequency.shareOf(trigram)
    const { match, isExact, share } = matchOf({ folded: term, category, shareOf })
    if (scope && scope.size <= Math.max(maxHits, share * this.#frequency.population)) {
      return {
        from: 'files',
        conditions: [...conditions, ...ofCategory, contains],
        values: { ...values, category, term },
      }
    }
    return {
      from: 'grams cross join files on id = grams.rowid',
      conditions: ['grams match @match', ...(isExact ? [] : [contains]), ...conditions],
      values: { ...values, match, term },
    }
  }

  // Counts from the nearest known position; in the second half from the end where the total is known.
  #scan(query: ListQuery, { scope, skip, total }: Span): FileRow[] {
    const { pageSize } = query
    const isBackwards = total !== undefined && skip > total / 2
    const sort = sortOf(query, scope)
    const order = orders[isBackwards ? orders[sort].reversed : sort]
    const take = isBackwards ? Math.min(pageSize, total - skip) : pageSize
    const position = isBackwards ? total - skip - take : skip
    const scale = JSON.stringify([order.by, ...keyOf(query)])
    const start = this.#seekCache.before(scale, position)
    const { conditions, values } = scanFilter(query, scope)
    if (start) conditions.push(order.from)
    const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
    // An index alone provides the ids; whole rows are read for the page only.
    const ids = this.#prepare(
      `select id from files ${where} order by ${order.by} limit @take offset @offset`,
    )
      .pluck()
      .all({ ...start?.row, ...values, take, offset: position - (start?.position ?? 0) })
    const rows = this.#rows(ids, query.sort)
    const row = isBackwards ? rows.at(-1) : rows[0]
    if (row && (position > 0 || query.search || scope)) {
      this.#seekCache.add(scale, { position, row })
    }
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

  // A few dozen texts in all: prepared once each.
  #prepare<Row = unknown>(sql: string): Statement<[Record<string, unknown>], Row> {
    const known = this.#statements.get(sql) ?? this.#db.prepare(sql)
    this.#statements.set(sql, known)
    return known as Statement<[Record<string, unknown>], Row> // The SQL text determines the row.
  }
}

interface Span {
  scope: Scope | undefined
  skip: number
  /** Number of files in the list, if known. */
  total?: number
}

// The index of a directory has its files by name.
const isByName = ({ sort, category, search }: ListQuery, scope: Scope | undefined) =>
  scope?.isRecursive === false && !category && !search && (sort === 'path' || sort === '-path')

const sortOf = (query: ListQuery, scope: Scope | undefined) => {
  if (!isByName(query, scope)) return query.sort
  return query.sort === 'path' ? 'name' : '-name'
}

function scanFilter(query: ListQuery, scope: Scope | undefined): Filter {
  const { category, search, sort } = query
  const { conditions, values } =
    (isByName(query, scope) ? scope?.direct : scope?.byPath) ?? everything
  const isByPath = sort === 'path' || sort === '-path'
  return {
    conditions: [
      ...(category ? ['category = @category'] : []),
      ...(search ? [`instr(${folded}, @term) > 0`] : []),
      // `+` keeps SQLite on the index of the order: by the index of paths it would read and sort the whole directory.
      ...conditions.map((each) => (isByPath ? each : each.replace(/^path/, '+path'))),
    ],
    values: { ...values, category, term: search && fold(search) },
  }
}
