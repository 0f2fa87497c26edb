import type { Transaction } from '@domains-and-files/persistence'
import type { FileRow } from '../../../files/file-record.ts'
import { fold } from '../../fold.ts'
import type { ListQuery } from '../../list-query.ts'
import { Parameters } from '../parameters.ts'
import { containsTerm, indexCondition } from './find-matches.ts'
import type { Order } from './list-order.ts'
import { directoryFilter, type ListScope } from './list-scope.ts'
import type { PathSample } from './path-sample.ts'

/** The row to count from, or the one before that; none: the first. */
export interface Start {
  from?: FileRow | undefined
  after?: FileRow | undefined
}

interface Scan {
  query: ListQuery
  scope: ListScope
  sample: PathSample
  order: Order
  start: Start
  offset: number
  take: number
}

/** Ids of the files that follow in an order. */
export async function scanPage(transaction: Transaction, scan: Scan): Promise<string[]> {
  const { search } = scan.query
  if (!search) return readInOrder(transaction, scan, undefined)
  const folded = fold(search)
  const maxRows = scannedRows(scan, folded)
  const near = maxRows && (await readInOrder(transaction, scan, { folded, maxRows }))
  return near && near.length === scan.take ? near : collectAll(transaction, scan, folded)
}

/** Reads along the index of the order; of a search, no more than so many rows. */
async function readInOrder(
  transaction: Transaction,
  { query, order, start, offset, take }: Scan,
  search: { folded: string; maxRows: number } | undefined,
): Promise<string[]> {
  const parameters = new Parameters()
  const conditions = rangeConditions({ query, order, start }, parameters)
  const near = `select id, folded, path, name, size, updated_at from static_service.files
    where ${conditions} order by ${order.by}`
  const from = search
    ? `(${near} limit ${search.maxRows}) near where ${containsTerm(search.folded, parameters)}`
    : `static_service.files where ${conditions}`
  // The planner cannot know how early the page is full.
  await transaction.query(inOrder)
  const rows = await transaction.query<{ id: number }>(
    `select id from ${from} order by ${order.by}
     limit ${parameters.add(take)} offset ${parameters.add(offset)}`,
    parameters.values,
  )
  return rows.map(({ id }) => String(id))
}

/** Collects all matches of a search by the index of trigrams, and sorts them. */
async function collectAll(
  transaction: Transaction,
  { query, sample, order, start, offset, take }: Scan,
  folded: string,
): Promise<string[]> {
  const parameters = new Parameters()
  const { trigrams } = sample.rarest(folded)
  await transaction.query(byTrigrams)
  const rows = await transaction.query<{ id: number }>(
    `with hits as materialized (
       select id, path, name, size, updated_at from static_service.files
       where ${containsTerm(folded, parameters)}
         and ${indexCondition(trigrams, query.category, parameters)}
         and ${rangeConditions({ query, order, start }, parameters)})
     select id from hits order by ${order.by}
     limit ${parameters.add(take)} offset ${parameters.add(offset)}`,
    parameters.values,
  )
  return rows.map(({ id }) => String(id))
}

function rangeConditions(
  { query, order, start: { from, after } }: Pick<Scan, 'query' | 'order' | 'start'>,
  parameters: Parameters,
): string {
  const conditions = [
    ...(from ? [order.from(from, parameters)] : []),
    ...(after ? [order.after(after, parameters)] : []),
    ...(query.category ? [`category = ${parameters.add(query.category)}`] : []),
    ...directoryFilter(query, parameters),
  ]
  return conditions.join(' and ') || 'true'
}

const inOrder = `set local enable_sort = off; set local enable_bitmapscan = off; set local enable_seqscan = off;
  set local max_parallel_workers_per_gather = 0`

const byTrigrams = `set local enable_sort = on; set local enable_bitmapscan = on;
  set local max_parallel_workers_per_gather = 0`

/**
 * Maximum rows to read in the order until the page is full: some times what a random order would take, since matches can
 * lie at its end. Undefined: collecting all matches is faster.
 */
function scannedRows({ query, scope, sample, offset, take }: Scan, folded: string) {
  const share = sample.shareOf(folded, query.category)
  const expected = (offset + take) / Math.max(share, 1e-6)
  if (expected > share * scope.population * rowsReadPerMatch) return undefined
  return Math.max(minScanned, Math.ceil(expected * 4))
}

// Collecting and sorting one match takes as long as comparing this many rows with the term.
const rowsReadPerMatch = 4

const minScanned = 20_000
