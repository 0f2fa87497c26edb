import { keyOf, type ListQuery } from '../list-query.ts'
import type { ChangedFile } from './changed-files.ts'
import { ListChanges, type ListedFiles } from './list-changes.ts'
import type { OrderName } from './list-order.ts'
import { SeekCache } from './seek-cache.ts'

const maxCachedResults = 64

// Some milliseconds. Then counting a page again is not much slower.
const maxShifts = 50_000

/** What is known about lists after one change of the catalog. */
export class ListCache {
  readonly lastChange: number
  readonly positions: SeekCache
  readonly #results: Map<string, number[] | undefined>

  constructor(
    lastChange: number,
    positions = new SeekCache(),
    results = new Map<string, number[] | undefined>(),
  ) {
    this.lastChange = lastChange
    this.positions = positions
    this.#results = results
    this.positions.enter(lastChange)
  }

  /** What is known after later changes: results of lists that had no changed file, and positions. */
  after(lastChange: number, changed: ChangedFile[]): ListCache {
    const changes = new ListChanges(changed)
    const results = [...this.#results].filter(([key]) => !changes.concern(JSON.parse(key)))
    return new ListCache(lastChange, this.#positionsAfter(lastChange, changes), new Map(results))
  }

  /** What `addResults` was given for this list. */
  results(query: ListQuery): { ids: number[] | undefined } | undefined {
    const key = listKey(query)
    return this.#results.has(key) ? { ids: this.#results.get(key) } : undefined
  }

  /** Ids of all files of a list, for its next pages; undefined: they are more than are counted. */
  addResults(query: ListQuery, ids: number[] | undefined): void {
    if (this.#results.size >= maxCachedResults) this.#results.clear()
    this.#results.set(listKey(query), ids)
  }

  #positionsAfter(lastChange: number, changes: ListChanges) {
    if (changes.size * this.positions.size > maxShifts) return new SeekCache()
    return this.positions.copy(lastChange, (key) => {
      const { list, order }: PositionKey = JSON.parse(key)
      return changes.shiftsIn(list, order)
    })
  }
}

/** The key of a list in `positions`, in one of its orders. */
export const positionKey = (query: ListQuery, order: OrderName) =>
  JSON.stringify({ list: keyOf(query), order })

interface PositionKey {
  list: ListedFiles
  order: OrderName
}

const listKey = (query: ListQuery) => JSON.stringify(keyOf(query))
