import type { Database } from 'better-sqlite3'

export interface StoredCall {
  at: number
  priority: string
}

/**
 * Counted calls in SQLite, so that a restart does not exceed the registrar's limits. A full or failing disk loses
 * nothing for this process: calls not stored yet are kept and stored with a later one.
 */
export class CallStore {
  readonly #insertAll: (calls: StoredCall[], forgetBefore: number) => void
  readonly #select: (since: number) => StoredCall[]
  readonly #onFailure: (error: unknown) => void
  #unstored: StoredCall[] = []
  #isFailing = false

  /** `onFailure` is called once per outage. */
  constructor(database: Database, onFailure: (error: unknown) => void) {
    const forget = database.prepare<[number]>('delete from calls where at <= ?')
    const insert = database.prepare<[StoredCall]>(
      'insert into calls (at, priority) values (:at, :priority)',
    )
    this.#insertAll = database.transaction((calls: StoredCall[], forgetBefore: number) => {
      forget.run(forgetBefore)
      for (const call of calls) insert.run(call)
    })
    const select = database.prepare<[number], StoredCall>(
      'select at, priority from calls where at > ? order by at',
    )
    this.#select = (since) => select.all(since)
    this.#onFailure = onFailure
  }

  /** Calls made after `since`, oldest first. */
  load(since: number): StoredCall[] {
    return this.#select(since)
  }

  /** Never throws: a call that cannot be stored must not fail a read. */
  add(call: StoredCall, forgetBefore: number) {
    this.#unstored.push(call)
    this.#unstored = this.#unstored.filter(({ at }) => at > forgetBefore)
    this.#flush(forgetBefore)
  }

  /** Whether all calls are stored; tries again what could not be stored. */
  isComplete(forgetBefore: number): boolean {
    if (this.#unstored.length > 0) this.#flush(forgetBefore)
    return this.#unstored.length === 0
  }

  #flush(forgetBefore: number) {
    try {
      this.#insertAll(this.#unstored, forgetBefore)
      this.#unstored = []
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#onFailure(error)
      this.#isFailing = true
    }
  }
}
