import type { Transaction } from '@domains-and-files/persistence'
import type { ListQuery } from '../../list-query.ts'
import type { Parameters } from '../parameters.ts'

/** What counters say about the files that a list can contain. */
export interface ListScope {
  /** Of the catalog that the snapshot shows. */
  revision: number
  /** All files. */
  population: number
  /** The directory that the list is restricted to; undefined: none. */
  directory: { isRecursive: boolean; size: number } | undefined
  /** Files of the category. */
  ofCategory: number
  isMissing: boolean
}

interface ScopeRow {
  revision: number
  population: number
  ofCategory: number | null
  size: number | null
  children: number | null
  subdirectories: number
}

/** Reads the counters for a query. */
export async function readScope(transaction: Transaction, query: ListQuery): Promise<ListScope> {
  const { prefix = '', recursive = true, category = '' } = query
  const [row] = await transaction.query<ScopeRow & Record<string, unknown>>(scopeQuery, [
    prefix,
    category,
    recursive,
  ])
  if (!row) throw new Error('the catalog has no row of counts')
  const { revision, population, size, children, subdirectories } = row
  const isWhole = prefix === '' && recursive
  const ofDirectory = recursive ? (size ?? 0) : (children ?? 0) - subdirectories
  return {
    revision,
    population,
    directory: isWhole ? undefined : { isRecursive: recursive, size: ofDirectory },
    ofCategory: row.ofCategory ?? 0,
    isMissing: size === null,
  }
}

const scopeQuery = `
  select revision, root.file_count population, scope.file_count size, scope.children,
    (select file_count from static_service.categories where category = $2) "ofCategory",
    case when $3 then 0
      else (select count(*) from static_service.directories where parent = $1) end subdirectories
  from static_service.catalog
    join static_service.directories root on root.path = ''
    left join static_service.directories scope on scope.path = $1`

/** Number of files in the list where a counter has it. */
export function countOf({ category, search }: ListQuery, scope: ListScope): number | undefined {
  if (search || (scope.directory && category)) return undefined
  if (scope.directory) return scope.directory.size
  return category ? scope.ofCategory : scope.population
}

/** Restricts files to those of the query's directory, by the index of the directory where it is not recursive. */
export function directoryFilter(
  { prefix = '', recursive = true }: ListQuery,
  parameters: Parameters,
): string[] {
  if (!recursive) return [`directory = ${parameters.add(prefix)}`]
  if (prefix === '') return []
  // `0` is the character after `/`.
  return [`path > ${parameters.add(`${prefix}/`)}`, `path < ${parameters.add(`${prefix}0`)}`]
}
