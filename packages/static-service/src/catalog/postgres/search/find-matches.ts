import type { Transaction } from '@domains-and-files/persistence'
import { fold } from '../../fold.ts'
import { type ListQuery, maxHits } from '../../list-query.ts'
import { Parameters } from '../parameters.ts'
import { orders } from './list-order.ts'
import { directoryFilter, type ListScope } from './list-scope.ts'
import type { PathSample } from './path-sample.ts'
import { categoryNumber } from './trigrams.ts'

// With trigrams of more files than this share, reading all files until enough match is faster than the index.
const commonShare = 0.3

// So few files are compared with the term one by one.
const fewFiles = 5000

interface Source {
  query: ListQuery
  scope: ListScope
  sample: PathSample
}

/** Ids of all files of a list in their order; undefined if there are more than are counted. */
export async function findMatches(
  transaction: Transaction,
  { query, scope, sample }: Source,
): Promise<string[] | undefined> {
  const parameters = new Parameters()
  const conditions = [
    ...matchFilter({ query, scope, sample }, parameters),
    ...directoryFilter(query, parameters),
  ]
  // Workers take longer to start than the rest takes.
  await transaction.query('set local max_parallel_workers_per_gather = 0')
  const [found] = await transaction.query<{ count: number; ids: string | null }>(
    `with hits as materialized (
       select id, path, size, updated_at from static_service.files
       where ${conditions.join(' and ') || 'true'} limit ${maxHits + 1})
     select count(*), string_agg(id::text, ',' order by ${orders[query.sort].by}) ids from hits`,
    parameters.values,
  )
  if (!found || found.count > maxHits) return undefined
  return found.ids?.split(',') ?? []
}

/** Conditions of the category and the search, by the index of trigrams where that has the fewest candidates. */
function matchFilter({ query, scope, sample }: Source, parameters: Parameters): string[] {
  const { category, search } = query
  const ofCategory = category ? [`category = ${parameters.add(category)}`] : []
  if (!search) return ofCategory
  const folded = fold(search)
  const conditions = [...ofCategory, containsTerm(folded, parameters)]
  const { directory } = scope
  if (directory && directory.size <= fewFiles) return conditions
  if (sample.shareOf(folded, category) >= commonShare) return conditions
  // The planner combines it with the index of paths where that helps.
  return [...conditions, indexCondition(sample.rarest(folded).trigrams, category, parameters)]
}

/** Condition for paths that contain a folded text. */
export const containsTerm = (folded: string, parameters: Parameters) =>
  `strpos(folded, ${parameters.add(folded)}) > 0`

/** The index has all files that contain the trigrams, and some others never: they are those of one path. */
export function indexCondition(
  trigrams: number[],
  category: string | undefined,
  parameters: Parameters,
): string {
  const numbers = category ? [...trigrams, categoryNumber(category)] : trigrams
  return `static_service.trigrams(folded, category) @> ${parameters.add(numbers)}::integer[]`
}
