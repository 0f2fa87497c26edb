import type { FileRow } from '../../files/file-record.ts'

/** A place in an order: the row that stands there, and how many stand before it. */
export interface Landmark {
  position: number
  row: FileRow
}

/**
 * Places that were found by counting along an order, so that the next page near them is not counted from the start.
 * True for one state of the database only.
 */
export class SeekCache {
  readonly #orders = new Map<string, Landmark[]>()
  #state = -1
  #count = 0

  /** Forgets all when the database is not in the state any more in which they were found, and says so. */
  enter(state: number): boolean {
    if (state === this.#state && this.#count < mostLandmarks) return false
    this.#orders.clear()
    this.#state = state
    this.#count = 0
    return true
  }

  /** The last known place that is not after `position`. */
  before(order: string, position: number): Landmark | undefined {
    return this.#orders.get(order)?.findLast((each) => each.position <= position)
  }

  add(order: string, landmark: Landmark): void {
    const known = this.#orders.get(order) ?? []
    const at = known.findLastIndex((each) => each.position <= landmark.position)
    if (known[at]?.position === landmark.position) return
    known.splice(at + 1, 0, landmark)
    this.#orders.set(order, known)
    this.#count += 1
  }
}

const mostLandmarks = 1000
