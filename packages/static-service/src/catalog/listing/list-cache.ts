import type { FileRow } from '../../files/file-record.ts'
import { keyOf, type ListQuery } from '../list-query.ts'
import {
  type ChangedFile,
  concern,
  type ListedFiles,
  shiftsIn,
  withFolded,
} from './list-changes.ts'
import type { OrderName } from './list-order.ts'

/** A position in an order: a row, which need not exist any more, and the number of rows before it. */
interface SeekPosition {
  position: number
  row: FileRow
}

const maxResults = 64
const maxPositions = 1000

// Some milliseconds. Then counting a page again is not much slower.
const maxShifts = 50_000

/** What is known about lists after one change of the catalog. */
export class ListCache {
  readonly lastChange: number
  /** By the key of a list. */
  readonly #results = new Map<string, number[] | undefined>()
  /** By list and order: the next page near a known position is not counted from the start. */
  readonly #positions = new Map<string, SeekPosition[]>()
  #count = 0

  constructor(lastChange: number) {
    this.lastChange = lastChange
  }

  /** What is known after later changes: results of lists that had no changed file, and positions. */
  after(lastChange: number, changed: ChangedFile[]): ListCache {
    const next = new ListCache(lastChange)
    const files = withFolded(changed)
    for (const [key, ids] of this.#results)
      if (!concern(files, JSON.parse(key))) next.#results.set(key, ids)
    if (files.length * this.#count > maxShifts) return next
    next.#count = this.#count
    for (const [key, positions] of this.#positions) {
      const { list, order }: PositionKey = JSON.parse(key)
      const shiftOf = shiftsIn(files, list, order)
      const shift = ({ position, row }: SeekPosition) => ({
        position: position + shiftOf(row),
        row,
      })
      next.#positions.set(key, positions.map(shift))
    }
    return next
  }

  /** What `addResults` was given for this list. */
  results(query: ListQuery): { ids: number[] | undefined } | undefined {
    const key = JSON.stringify(keyOf(query))
    return this.#results.has(key) ? { ids: this.#results.get(key) } : undefined
  }

  /** Ids of all files of a list, for its next pages; undefined: they are more than are counted. */
  addResults(query: ListQuery, ids: number[] | undefined): void {
    if (this.#results.size >= maxResults) this.#results.clear()
    this.#results.set(JSON.stringify(keyOf(query)), ids)
  }

  /** The last known position up to this one, and the first one after it. */
  nearest(query: ListQuery, order: OrderName, position: number) {
    const known = this.#positions.get(positionKey(query, order)) ?? []
    const at = known.findLastIndex((each) => each.position <= position)
    return { before: known[at], after: known[at + 1] }
  }

  addPosition(query: ListQuery, order: OrderName, found: SeekPosition): void {
    if (this.#count >= maxPositions) {
      this.#positions.clear()
      this.#count = 0
    }
    const key = positionKey(query, order)
    const known = this.#positions.get(key) ?? []
    const at = known.findLastIndex((each) => each.position <= found.position)
    if (known[at]?.position === found.position) return
    known.splice(at + 1, 0, found)
    this.#positions.set(key, known)
    this.#count += 1
  }
}

interface PositionKey {
  list: ListedFiles
  order: OrderName
}

const positionKey = (query: ListQuery, order: OrderName) =>
  JSON.stringify({ list: keyOf(query), order })
