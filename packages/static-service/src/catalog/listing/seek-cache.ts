import type { FileRow } from '../../files/file-record.ts'

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
