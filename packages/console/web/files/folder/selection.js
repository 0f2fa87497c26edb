/**
 * The chosen rows of a folder. Directories count with all that is below them.
 * @typedef {Api.FileRecord | Api.DirectoryNode} Entry
 */
export class Selection {
  /** @type {Map<string, Entry>} */
  #entries = new Map()
  #last = 0
  #onChange

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange
  }

  get size() {
    return this.#entries.size
  }

  get files() {
    return [...this.#entries.values()].flatMap((entry) => ('sha256' in entry ? [entry] : []))
  }

  get directories() {
    return [...this.#entries.values()].flatMap((entry) => ('sha256' in entry ? [] : [entry]))
  }

  get bytes() {
    const sizes = [...this.#entries.values()].map((entry) =>
      'sha256' in entry ? entry.size : entry.total_size,
    )
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** @param {Entry} entry */
  has(entry) {
    return this.#entries.has(entry.path)
  }

  /**
   * Chooses a row or gives it up; with Shift, also all rows from the last one that was clicked.
   * @param {number} index
   * @param {boolean} isRange
   * @param {(index: number) => Entry | undefined} entryAt
   */
  toggle(index, isRange, entryAt) {
    const entry = entryAt(index)
    if (!entry) return
    const isChosen = !this.has(entry)
    const from = isRange ? Math.min(this.#last, index) : index
    const to = isRange ? Math.max(this.#last, index) : index
    for (let at = from; at <= to; at += 1) {
      const each = entryAt(at)
      if (each && isChosen) this.#entries.set(each.path, each)
      else if (each) this.#entries.delete(each.path)
    }
    this.#last = index
    this.#onChange()
  }

  /** @param {Entry[]} entries */
  choose(entries) {
    this.#entries = new Map(entries.map((entry) => [entry.path, entry]))
    this.#onChange()
  }
}
