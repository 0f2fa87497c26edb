import type { Clock } from '@domains-and-files/http'
import { join, name, type Sql, sql } from '@domains-and-files/persistence'
import { type BudgetShare, type BudgetState, type CallBudget, keepMs } from './call-budget.ts'
import type { StoredCall } from './call-windows.ts'

const calls = name('calls')

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
  /** Calls of earlier processes that `read` has not returned yet, oldest first. */
  #earlier: BudgetState['calls']
  #blockedUntil = 0
  /** Calls up to this time count in no window. */
  #outdated = 0
  #unstored: StoredCall[] = []
  #isFailing = false
  #flushing: Promise<void> | undefined

  private constructor(database: Sql, options: Options, earlier: BudgetState['calls']) {
    this.#sql = database
    this.#options = options
    this.#earlier = earlier
  }

  static async open(database: Sql, options: Options): Promise<LocalBudget> {
    const now = options.clock.now()
    const made = await database.all<BudgetState['calls'][number]>(
      sql`select id, at, priority from ${calls} where account = ${options.account} order by at`,
    )
    // A clock that was set back must not block for ever.
    const earlier = made.map((call) => ({ ...call, at: Math.min(call.at, now) }))
    return new LocalBudget(database, options, earlier)
  }

  // While the storage fails, each use of this getter retries it.
  get isStored(): boolean {
    if (this.#isFailing) this.#flush()
    return !this.#isFailing
  }

  async read(): Promise<BudgetState> {
    const now = this.#options.clock.now()
    const calls = this.#earlier.splice(0)
    return { now, blockedUntil: this.#blockedUntil, calls, holds: [], waiters: [] }
  }

  async turn(_: number, pauseMs: number, take: (state: BudgetState) => BudgetShare) {
    const state = await this.read()
    const { now } = state
    if (pauseMs > 0) state.blockedUntil = Math.max(this.#blockedUntil, now + pauseMs)
    this.#blockedUntil = state.blockedUntil
    const { calls: made } = take(state)
    this.#outdated = now - keepMs
    this.#unstored.push(...made.map((priority) => ({ at: now, priority })))
    this.#unstored = this.#unstored.filter(({ at }) => at > this.#outdated)
    this.#flush()
    return 0
  }

  /** Resolves when the counted calls are stored, or storing them has failed. */
  async settle(): Promise<void> {
    await this.#flushing
  }

  // In the background: a call that cannot be stored must not fail a read.
  #flush() {
    this.#flushing ??= this.#storeAll().finally(() => {
      this.#flushing = undefined
    })
  }

  async #storeAll() {
    const { account, onFailure } = this.#options
    try {
      while (this.#unstored.length > 0) {
        const some = new Set(this.#unstored)
        const rows = Array.from(some, ({ at, priority }) => sql`(${account}, ${at}, ${priority})`)
        await this.#sql.transaction(async (transaction) => {
          await transaction.run(
            sql`delete from ${calls} where account = ${account} and at <= ${this.#outdated}`,
          )
          await transaction.run(
            sql`insert into ${calls} (account, at, priority) values ${join(rows)}`,
          )
        })
        this.#unstored = this.#unstored.filter((call) => !some.has(call))
        this.#isFailing = false
      }
    } catch (error) {
      if (!this.#isFailing) onFailure(error)
      this.#isFailing = true
    }
  }
}
