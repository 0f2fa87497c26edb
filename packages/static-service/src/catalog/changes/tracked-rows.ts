/** The effect of a command on a row. */
export interface RowChange<Row> {
  key: string
  before: Row | undefined
  after: Row | undefined
}

/** Rows by key as they were loaded and as they are now. Changes since the last `accept` can be undone. */
export class TrackedRows<Row> {
  readonly #loaded = new Map<string, Row>()
  readonly #now = new Map<string, Row | undefined>()
  #undo: { key: string; row: Row | undefined }[] = []

  /** `keys`: all keys that may be used; `rows`: the existing rows. */
  constructor(keys: Iterable<string>, rows: Iterable<[string, Row]>) {
    for (const key of keys) this.#now.set(key, undefined)
    for (const [key, row] of rows) {
      this.#loaded.set(key, row)
      this.#now.set(key, row)
    }
  }

  get(key: string): Row | undefined {
    const row = this.#now.get(key)
    if (row === undefined && !this.#now.has(key)) {
      throw new Error(`the row of ${key} was not loaded`)
    }
    return row
  }

  set(key: string, row: Row | undefined): void {
    this.#undo.push({ key, row: this.get(key) })
    this.#now.set(key, row)
  }

  /** The net changes since the last `accept`. */
  get pending(): RowChange<Row>[] {
    const before = new Map<string, Row | undefined>()
    for (const { key, row } of this.#undo) if (!before.has(key)) before.set(key, row)
    return changesOf(before.keys(), (key) => before.get(key), this.#now)
  }

  /** Makes the pending changes permanent, and returns them. */
  accept(): RowChange<Row>[] {
    const { pending } = this
    this.#undo = []
    return pending
  }

  /** Undoes the changes since the last `accept`. */
  undo(): void {
    for (const { key, row } of this.#undo.reverse()) this.#now.set(key, row)
    this.#undo = []
  }

  /** The net changes since the rows were loaded. */
  changes(): RowChange<Row>[] {
    return changesOf(this.#now.keys(), (key) => this.#loaded.get(key), this.#now)
  }
}

function changesOf<Row>(
  keys: Iterable<string>,
  before: (key: string) => Row | undefined,
  now: Map<string, Row | undefined>,
): RowChange<Row>[] {
  const changes: RowChange<Row>[] = []
  for (const key of keys) {
    const change = { key, before: before(key), after: now.get(key) }
    if (change.before !== change.after) changes.push(change)
  }
  return changes
}
