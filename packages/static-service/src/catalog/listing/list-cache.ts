import { type SqlTransaction, sql } from '@domains-and-files/persistence'
import { fold, parentOf } from '../../files/file-path.ts'
import type { FileRow } from '../../files/file-record.ts'
import { type RecordedFile, readRecordedFiles } from '../history/change-log.ts'
import { type ListQuery, type OrderName, orders, type SortedFile } from '../list-query.ts'
import type { RecordedState } from '../tables.ts'

/** A position in an order: a row, which need not exist any more, and the number of rows before it. */
export interface SeekPosition {
  position: number
  row: FileRow
}

type Filter = Pick<ListQuery, 'search' | 'category' | 'prefix' | 'recursive'>

/** What is known of a list. */
export interface KnownList {
  filter: Filter
  /** The ids of all its files, in order; undefined in it: more than are counted. */
  results?: { ids: number[] | undefined } | undefined
  /** In each order, by position: a page near one is not counted from the start. */
  positions: Map<OrderName, SeekPosition[]>
}

const maxLists = 64
const maxPositions = 100

// All lists together take milliseconds; with more, counting a page again is hardly slower.
const maxShifts = 2000

/** What is known of lists as of one change of the catalog. */
export class ListCache {
  readonly lastChange: number
  /** By filter and sort. */
  readonly #lists = new Map<string, KnownList>()

  constructor(lastChange: number) {
    this.lastChange = lastChange
  }

  /** What is known of a list; callers add to it. */
  list({ search, category, prefix, recursive, sort }: ListQuery): KnownList {
    const key = JSON.stringify([search, category, prefix, recursive, sort])
    const known = this.#lists.get(key)
    if (known) return known
    if (this.#lists.size >= maxLists) this.#lists.clear()
    const list: KnownList = {
      filter: { search, category, prefix, recursive },
      positions: new Map(),
    }
    this.#lists.set(key, list)
    return list
  }

  /** The cache as of a later change that the transaction sees: keeps what the changes since then leave known. */
  async after(transaction: SqlTransaction, lastChange: number): Promise<ListCache> {
    const next = new ListCache(lastChange)
    const changed = await readChanged(transaction, { after: this.lastChange, upTo: lastChange })
    if (changed)
      for (const [key, list] of this.#lists) next.#lists.set(key, afterChanges(list, changed))
    return next
  }
}

/** Adds a position to those known in an order. */
export function addPosition({ positions }: KnownList, order: OrderName, found: SeekPosition): void {
  const known = positions.get(order) ?? []
  const at = known.findLastIndex((each) => each.position <= found.position)
  if (known[at]?.position === found.position) return
  positions.set(order, known.length < maxPositions ? known.toSpliced(at + 1, 0, found) : [found])
}

/** A changed file, as lists see it. */
type ChangedFile = RecordedFile & { folded: string }

// Keeps the results of a list without a changed file; positions move, whether their file still exists or not.
function afterChanges({ filter, results, positions }: KnownList, changed: ChangedFile[]) {
  const listed = (side: 'before' | 'after') =>
    changed.flatMap((file) => {
      const state = file[side]
      return isIn(filter, file, state) ? { path: file.path, ...state } : []
    })
  const [removed, added] = [listed('before'), listed('after')]
  const changes = removed.length + added.length
  const list: KnownList = {
    filter,
    results: changes > 0 ? undefined : results,
    positions: new Map(),
  }
  for (const [order, known] of positions) {
    if (changes * known.length > maxShifts) continue
    const countBefore = (files: SortedFile[], row: SortedFile) =>
      files.filter((file) => orders[order].precedes(file, row)).length
    const moved = known.map(({ position, row }) => ({
      position: position + countBefore(added, row) - countBefore(removed, row),
      row,
    }))
    list.positions.set(order, moved)
  }
  return list
}

function isIn(
  { search, category, prefix, recursive }: Filter,
  { path, folded }: ChangedFile,
  state: RecordedState | null,
): state is RecordedState {
  if (!state || (category && state.category !== category)) return false
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}

const [maxChanges, maxRead] = [1000, 1000]

/** The files of changes after one, up to another; undefined if they are too many, or not known. */
async function readChanged(
  transaction: SqlTransaction,
  { after, upTo }: { after: number; upTo: number },
): Promise<ChangedFile[] | undefined> {
  if (upTo - after > maxChanges) return undefined
  const span = sql`change_id > ${after} and change_id <= ${upTo} limit ${maxRead + 1}`
  const files = await readRecordedFiles(transaction, span)
  if (files.length > maxRead || files.some(({ before, after }) => !before && !after))
    return undefined
  // A slice of a change, or files of a restore, have numbers without rows.
  const changes = new Set(files.map(({ changeId }) => changeId))
  if (changes.size !== upTo - after) return undefined
  return files.map((file) => ({ ...file, folded: fold(file.path) }))
}
