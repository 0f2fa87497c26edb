/** Rows by key as they were loaded and as they are now. Changes since the last `accept` can be undone. */
export class TrackedRows<Row> {
  readonly #loaded = new Map<string, Row>()
  readonly #now = new Map<string, Row | undefined>()
  #undo: { key: string; row: Row | undefined }[] = []

  /** `keys` are all that exist or could: rows are the ones that exist. */
  constructor(keys: Iterable<string>, rows: Iterable<[string, Row]>) {
    for (const key of keys) this.#now.set(key, undefined)
    for (const [key, row] of rows) {
      this.#loaded.set(key, row)
      this.#now.set(key, row)
    }
  }

  get(key: string): Row | undefined {
    if (!this.#now.has(key)) throw new Error(`the row of ${key} was not loaded`)
    return this.#now.get(key)
  }

  set(key: string, row: Row | undefined): void {
    this.#undo.push({ key, row: this.get(key) })
    this.#now.set(key, row)
  }

  /** Makes the changes up to now permanent. */
  accept(): void {
    this.#undo = []
  }

  /** Undoes the changes since the last `accept`. */
  undo(): void {
    for (const { key, row } of this.#undo.reverse()) this.#now.set(key, row)
    this.#undo = []
  }

  /** What differs from what was loaded. */
  changes(): { key: string; before: Row | undefined; now: Row | undefined }[] {
    return [...this.#now].flatMap(([key, now]) => {
      const before = this.#loaded.get(key)
      return before === now ? [] : [{ key, before, now }]
    })
  }
}
