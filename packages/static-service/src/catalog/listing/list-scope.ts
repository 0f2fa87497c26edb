import {
  dialect,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { below } from '../changes/load-files.ts'
import type { ListQuery } from '../list-query.ts'
import type { Order } from './list-order.ts'

/** What counters say about the files that a list can contain. */
export interface ListScope {
  /** The last change that the snapshot shows. */
  lastChange: number
  /** All files. */
  population: number
  /** The directory that the list is restricted to; undefined: none. */
  directory: { isRecursive: boolean; size: number } | undefined
  /** Files of the category. */
  ofCategory: number
  isMissing: boolean
}

interface ScopeRow {
  lastChange: number
  population: number
  ofCategory: number | null
  size: number | null
  children: number | null
  subdirectories: number
}

/** Reads the counters for a query. */
export async function readScope(
  transaction: SqlTransaction,
  { prefix = '', recursive = true, category }: ListQuery,
): Promise<ListScope> {
  const row = await transaction.get<ScopeRow>(sql`
    select last_change "lastChange", root.file_count population, scope.file_count size, scope.children,
      (select file_count from ${name('categories')} where category = ${category ?? ''}) "ofCategory",
      ${recursive ? sql`0` : sql`(select count(*) from ${name('directories')} where parent = ${prefix})`} subdirectories
    from ${name('catalog')}
      join ${name('directories')} root on root.path = ''
      left join ${name('directories')} scope on scope.path = ${prefix}`)
  if (!row) throw new Error('the catalog has no row of counts')
  const { lastChange, population, size, children, subdirectories } = row
  const isWhole = prefix === '' && recursive
  const ofDirectory = recursive ? (size ?? 0) : (children ?? 0) - subdirectories
  return {
    lastChange,
    population,
    directory: isWhole ? undefined : { isRecursive: recursive, size: ofDirectory },
    ofCategory: row.ofCategory ?? 0,
    isMissing: size === null,
  }
}

/** Number of files in the list where a counter has it. */
export function countOf({ category, search }: ListQuery, scope: ListScope): number | undefined {
  if (search || (scope.directory && category)) return undefined
  if (scope.directory) return scope.directory.size
  return category ? scope.ofCategory : scope.population
}

/**
 * Restricts files to those of the query's directory: by its index or by that of paths, unless files are read along an order
 * that these indexes do not provide.
 */
export function directoryFilter(
  { prefix = '', recursive = true }: ListQuery,
  order?: Order,
): Statement[] {
  if (!recursive) {
    const isIndexed = !order || order.column === 'name'
    return [sql`${isIndexed ? indexed : unindexed}directory = ${prefix}`]
  }
  const isIndexed = !order || order.column === 'path'
  return prefix === '' ? [] : [below(prefix, isIndexed ? indexed : unindexed)]
}

const indexed = sql``

// By such an index SQLite would read and sort the whole directory.
const unindexed = sql`${dialect({ sqlite: sql`+`, postgres: sql`` })}`
