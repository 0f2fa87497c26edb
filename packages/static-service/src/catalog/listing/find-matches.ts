import {
  dialect,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { fold } from '../fold.ts'
import { type ListQuery, maxHits } from '../list-query.ts'
import { foldedPath } from '../migrations.ts'
import { all } from '../records.ts'
import { orders } from './list-order.ts'
import { directoryFilter, type ListScope } from './list-scope.ts'
import type { PathSample } from './path-sample.ts'
import { searchIndexOf } from './search-index.ts'

// With runs of more files than this share, reading all files until enough match is faster than the index.
const commonShare = 0.3

// So few files are compared with the term one by one.
const fewFiles = 5000

interface Source {
  query: ListQuery
  scope: ListScope
  sample: PathSample
}

/** Numbers of all files of a list in their order; undefined if there are more than are counted. */
export async function findMatches(
  transaction: SqlTransaction,
  { query, scope, sample }: Source,
): Promise<number[] | undefined> {
  const { from, conditions } = sourceOf(transaction, { query, scope, sample })
  await searchIndexOf(transaction.dialect).plan(transaction, 'index')
  const found = await transaction.get<{ count: number; ids: string | null }>(sql`
    with hits as materialized (
      select id, path, size, updated_at from ${from} where ${all(conditions)} limit ${maxHits + 1})
    select count(*) count, string_agg(cast(id as text), ',' order by ${orders[query.sort].by}) ids from hits`)
  if (!found || found.count > maxHits) return undefined
  return found.ids?.split(',').map(Number) ?? []
}

/** The files to compare: by the index of runs where that has the fewest candidates. */
function sourceOf(transaction: SqlTransaction, { query, scope, sample }: Source) {
  const { category, search } = query
  const conditions = directoryFilter(query)
  if (category) conditions.push(sql`category = ${category}`)
  const unindexed = { from: sql`${name('files')}`, conditions }
  if (!search) return unindexed
  const folded = fold(search)
  conditions.push(containsTerm(folded))
  const { directory } = scope
  const share = sample.shareOf(folded, category)
  if (directory && directory.size <= Math.max(fewFiles, share * scope.population)) return unindexed
  if (share >= commonShare) return unindexed
  // PostgreSQL's planner combines it with the index of paths where that helps.
  const { from, condition } = searchIndexOf(transaction.dialect).candidates(
    sample.rarest(folded),
    category,
  )
  return { from, conditions: [condition, ...conditions] }
}

/** Condition for paths that contain a folded text. */
export const containsTerm = (folded: string): Statement =>
  sql`${dialect({
    sqlite: sql`instr(${foldedPath}, ${folded}) > 0`,
    postgres: sql`strpos(${foldedPath}, ${folded}) > 0`,
  })}`
