import type { FileRow } from '../../files/file-record.ts'
import { keyOf, type ListQuery } from '../list-query.ts'
import { type ChangedFile, ListChanges, type ListedFiles } from './list-changes.ts'
import type { OrderName } from './list-order.ts'

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

/** A position in an order: a row, which need not exist any more, and the number of rows before it. */
export interface SeekPosition {
  position: number
  row: FileRow
}

/**
 * Known positions in orders of files: the next page near one is not counted from the start. Valid for one state of the
 * database.
 */
export class SeekCache {
  readonly #orders = new Map<string, SeekPosition[]>()
  #state = -1
  #count = 0

  /** Drops all positions when the database has changed or they are too many; returns whether it did. */
  enter(state: number): boolean {
    if (state === this.#state && this.#count < maxPositions) return false
    this.#orders.clear()
    this.#state = state
    this.#count = 0
    return true
  }

  /** The positions in another state: `shiftsOf` an order returns by how many rows each has moved. */
  copy(state: number, shiftsOf: (order: string) => (row: FileRow) => number): SeekCache {
    const copy = new SeekCache()
    copy.#state = state
    copy.#count = this.#count
    for (const [order, positions] of this.#orders) {
      const shiftOf = shiftsOf(order)
      const shifted = positions.map(({ position, row }) => ({
        position: position + shiftOf(row),
        row,
      }))
      copy.#orders.set(order, shifted)
    }
    return copy
  }

  /** The number of positions. */
  get size(): number {
    return this.#count
  }

  /** The last known position that is not after `position`. */
  before(order: string, position: number): SeekPosition | undefined {
    return this.#orders.get(order)?.findLast((each) => each.position <= position)
  }

  /** The first known position after `position`. */
  after(order: string, position: number): SeekPosition | undefined {
    return this.#orders.get(order)?.find((each) => each.position > position)
  }

  add(order: string, found: SeekPosition): void {
    const known = this.#orders.get(order) ?? []
    const at = known.findLastIndex((each) => each.position <= found.position)
    if (known[at]?.position === found.position) return
    known.splice(at + 1, 0, found)
    this.#orders.set(order, known)
    this.#count += 1
  }
}

const maxPositions = 1000
