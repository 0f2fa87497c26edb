/**
 * The chosen rows of a list, by their keys.
 * @template Entry
 */
export class Selection {
  /** @type {Map<string, Entry>} */
  #chosen = new Map()
  #last = 0
  #keyOf
  #onChange

  /** @param {(entry: Entry) => string} keyOf @param {() => void} onChange */
  constructor(keyOf, onChange) {
    this.#keyOf = keyOf
    this.#onChange = onChange
  }

  get entries() {
    return [...this.#chosen.values()]
  }

  /** @param {Entry} entry */
  has(entry) {
    return this.#chosen.has(this.#keyOf(entry))
  }

  /**
   * Chooses a row or gives it up; with Shift, also all rows from the last one that was clicked.
   * @param {number} index
   * @param {boolean} isRange
   * @param {(index: number) => Entry | undefined} entryAt undefined: it cannot be chosen
   */
  toggle(index, isRange, entryAt) {
    const entry = entryAt(index)
    if (!entry) return
    const isGivenUp = this.has(entry)
    const other = isRange ? this.#last : index
    for (let at = Math.min(other, index); at <= Math.max(other, index); at += 1) {
      const each = entryAt(at)
      if (each && isGivenUp) this.#chosen.delete(this.#keyOf(each))
      else if (each) this.#chosen.set(this.#keyOf(each), each)
    }
    this.#last = index
    this.#onChange()
  }

  /** @param {Entry[]} entries */
  choose(entries) {
    this.#chosen = new Map(entries.map((entry) => [this.#keyOf(entry), entry]))
    this.#onChange()
  }
}
