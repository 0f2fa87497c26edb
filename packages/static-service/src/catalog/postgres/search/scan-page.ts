import type { Transaction } from '@domains-and-files/persistence'
import type { FileRow } from '../../../files/file-record.ts'
import { fold } from '../../fold.ts'
import type { ListQuery } from '../../list-query.ts'
import { Parameters } from '../parameters.ts'
import { containsTerm, indexCondition } from './find-matches.ts'
import type { Order } from './list-order.ts'
import { directoryFilter, type ListScope } from './list-scope.ts'
import type { PathSample } from './path-sample.ts'

interface Scan {
  query: ListQuery
  scope: ListScope
  sample: PathSample
  order: Order
  /** The row to count from; undefined: the first. */
  start: FileRow | undefined
  offset: number
  take: number
}

/** Ids of the files that follow in an order. */
export async function scanPage(transaction: Transaction, scan: Scan): Promise<string[]> {
  const { query, order, start, offset, take } = scan
  const parameters = new Parameters()
  const isCollected = collectsAll(scan)
  const conditions = [
    ...(start ? [order.from(start, parameters)] : []),
    ...filters(scan, parameters, isCollected),
    ...directoryFilter(query, parameters),
  ]
  // The planner takes strpos() for more selective than it is, and would sort.
  if (!isCollected) await transaction.query(withoutSort)
  const rows = await transaction.query<{ id: number }>(
    `select id from static_service.files where ${conditions.join(' and ') || 'true'}
     order by ${order.by} limit ${parameters.add(take)} offset ${parameters.add(offset)}`,
    parameters.values,
  )
  return rows.map(({ id }) => String(id))
}

const withoutSort =
  'set local enable_sort = off; set local enable_bitmapscan = off; set local max_parallel_workers_per_gather = 0'

function filters({ query, sample }: Scan, parameters: Parameters, isCollected: boolean): string[] {
  const { category, search } = query
  const ofCategory = category ? [`category = ${parameters.add(category)}`] : []
  if (!search) return ofCategory
  const folded = fold(search)
  const conditions = [...ofCategory, containsTerm(folded, parameters)]
  if (!isCollected) return conditions
  return [...conditions, indexCondition(sample.rarest(folded).trigrams, category, parameters)]
}

/** Whether it is faster to collect all matches of a search by the index of trigrams and sort them. */
function collectsAll({ query, scope, sample, offset, take }: Scan): boolean {
  if (!query.search) return false
  const share = sample.shareOf(fold(query.search), query.category)
  const scanned = (offset + take) / Math.max(share, 1e-6)
  return scanned > share * scope.population * rowsScannedPerMatch
}

// Collecting and sorting one match takes as long as comparing this many rows with the term.
const rowsScannedPerMatch = 4
