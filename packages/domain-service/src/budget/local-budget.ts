import type { Clock } from '@domains-and-files/http'
import { join, name, type Sql, sql } from '@domains-and-files/persistence'
import { type BudgetShare, type BudgetState, type CallBudget, keepMs, type StoredCall } from './call-budget.ts'

const calls = name('calls')
const noOthers = { holds: [], waiters: [], places: [], claims: [] }

interface Options {
  account: string
  clock: Clock
  /** Called once per outage. */
  onFailure: (error: unknown) => void
}

/**
 * The budget of the only process that calls the registrar: in memory, with its calls in SQLite, so that a restart does not
 * exceed the registrar's limits. A full or failing disk loses nothing for this process: calls not stored yet are kept and
 * stored with a later one.
 */
export class LocalBudget implements CallBudget {
  readonly isShared = false
  readonly #sql: Sql
  readonly #options: Options
  #blockedUntil = 0
  #unstored: StoredCall[] = []
  #isFailing = false
  #stored = Promise.resolve()

  constructor(database: Sql, options: Options) {
    this.#sql = database
    this.#options = options
  }

  /** With the calls of earlier processes. */
  async read(): Promise<BudgetState> {
    const now = this.#options.clock.now()
    const made = await this.#sql.all<StoredCall>(sql`
      select at, priority from ${calls} where account = ${this.#options.account} order by at`)
    // A clock that was set back must not block for ever.
    const known = made.map((call) => ({ ...call, at: Math.min(call.at, now) }))
    return { now, blockedUntil: this.#blockedUntil, calls: known, ...noOthers }
  }

  async turn(pauseMs: number, take: (state: BudgetState) => BudgetShare) {
    const at = this.#options.clock.now()
    if (pauseMs > 0) this.#blockedUntil = Math.max(this.#blockedUntil, at + pauseMs)
    const state = { now: at, blockedUntil: this.#blockedUntil, calls: [], ...noOthers }
    const made = take(state).calls.map((priority) => ({ at, priority }))
    this.#unstored = [...this.#unstored, ...made].filter((call) => call.at > at - keepMs)
    this.#stored = this.#stored.then(() => this.#store())
  }

  /** Resolves when the counted calls are stored, or storing them has failed again. */
  settle(): Promise<void> {
    return this.#stored.then(() => this.#store())
  }

  // In the background: a call that cannot be stored must not fail a read.
  async #store() {
    const { account, clock, onFailure } = this.#options
    if (this.#unstored.length === 0) return
    const some = new Set(this.#unstored)
    const rows = Array.from(some, ({ at, priority }) => sql`(${account}, ${at}, ${priority})`)
    try {
      await this.#sql.transaction(async (transaction) => {
        await transaction.run(sql`delete from ${calls} where account = ${account} and at <= ${clock.now() - keepMs}`)
        await transaction.run(sql`insert into ${calls} (account, at, priority) values ${join(rows)}`)
      })
      this.#unstored = this.#unstored.filter((call) => !some.has(call))
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) onFailure(error)
      this.#isFailing = true
    }
  }
}
