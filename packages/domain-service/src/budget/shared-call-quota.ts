import { databaseProblem, type Timer } from '@domains-and-files/http'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { type BudgetChanges, type BudgetState, type CallBudget, holdMs } from './call-budget.ts'
import { CallQuota, type Grant, type Hold, type Priority, type QuotaOptions } from './call-quota.ts'
import { CallWindows } from './call-windows.ts'

interface SharedOptions extends QuotaOptions {
  budget: CallBudget
  isAvailable: () => boolean
}

/** Slots may come free at another replica at any time. */
const retryMs = 250
/** How old the counts of `state` are at most. */
const refreshMs = 1_000
const pruneMs = 3_600_000

/**
 * The quota of all replicas of one registrar account. Each turn locks the budget in the database, counts what others have
 * taken since, and takes what is free: writes go first across replicas.
 */
export class SharedCallQuota extends CallQuota {
  readonly #budget: CallBudget
  readonly #isAvailable: () => boolean
  readonly #timers: NodeJS.Timeout[]
  /** The last call that `windows` counts. */
  #lastId = 0
  /** The database's clock minus that of this process. */
  #clockOffset = 0
  #released: string[] = []
  #pauseMs = 0
  #isPublished = false
  #running: Promise<void> | undefined
  #isDue = false
  #retry: Timer | undefined
  /** The turn under way, which becomes effective as a whole or not at all. */
  #turn = newTurn()

  private constructor({ budget, isAvailable, ...options }: SharedOptions) {
    super(options)
    this.#budget = budget
    this.#isAvailable = isAvailable
    this.#timers = [
      setInterval(() => this.serve(), refreshMs).unref(),
      setInterval(() => void this.#prune(), pruneMs).unref(),
    ]
  }

  /** Counts the calls that were made before. */
  static async open(options: SharedOptions): Promise<SharedCallQuota> {
    await options.budget.open()
    const quota = new SharedCallQuota(options)
    await quota.#prune()
    await quota.#refresh()
    return quota
  }

  pause(milliseconds: number) {
    this.#pauseMs = Math.max(this.#pauseMs, milliseconds)
    this.serve()
  }

  get isStored(): boolean {
    return this.#isAvailable()
  }

  override close() {
    super.close()
    for (const timer of this.#timers) clearInterval(timer)
    this.#retry?.cancel()
  }

  // The database's clock.
  protected now(): number {
    return Math.round(this.#clockOffset + this.clock.now())
  }

  protected count(priority: Priority) {
    this.windows.count(priority, this.#turn.now)
    this.#turn.changes.calls.push(priority)
  }

  protected hold(hold: Hold) {
    this.windows.hold(hold.priority, hold.slots)
    this.#turn.changes.holds.push(hold)
    hold.expiresAt = performance.now() + holdMs
  }

  protected useHeld(hold: Hold) {
    this.windows.hold(hold.priority, -1)
    this.count(hold.priority)
    this.#turn.changes.used.push(hold.id)
    hold.expiresAt = performance.now() + holdMs
  }

  protected release({ id }: Hold) {
    this.#released.push(id)
  }

  protected settle(grant: Grant) {
    this.#turn.granted.push(grant)
  }

  protected serve() {
    this.#isDue = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async #run() {
    await Promise.resolve() // Calls of one event-loop turn share a transaction.
    while (this.#isDue) {
      this.#isDue = false
      this.#retry?.cancel()
      const hasWork = this.queue.size + this.#released.length + this.#pauseMs > 0
      if (hasWork || this.#isPublished) await this.#takeTurn()
      else await this.#refresh().catch(() => undefined) // The probe reports it.
    }
  }

  async #takeTurn() {
    const turn = newTurn()
    this.#turn = turn
    const released = this.#released.splice(0)
    const pauseMs = this.#pauseMs
    this.#pauseMs = 0
    try {
      const since = { id: this.#lastId, keepMs: this.windows.keepMs }
      this.#lastId = await this.#budget.turn({ released, pauseMs }, since, (state) =>
        this.#decide(turn, state),
      )
      for (const { resolve } of turn.granted) resolve()
      this.#isPublished = this.queue.size > 0
    } catch (error) {
      // No call was made, whether or not its slot was taken.
      const failure = databaseProblem(new DatabaseUnavailableError(error)) ?? error
      // What was counted meanwhile may not have been stored.
      this.windows = new CallWindows(this.limits)
      this.#lastId = 0
      for (const { reject } of turn.granted) reject(failure)
      this.queue.clear(failure instanceof Error ? failure : new Error(String(failure)))
    }
    if (this.queue.size > 0) this.#retry = this.clock.setTimer(() => this.serve(), retryMs)
  }

  #decide(turn: Turn, state: BudgetState): BudgetChanges {
    this.#adopt(state)
    turn.now = state.now
    const others = new Map<Priority, number>()
    for (const { priority, calls } of state.waiters)
      others.set(priority, (others.get(priority) ?? 0) + calls)
    const { now, blockedUntil } = state
    this.queue.serve({ windows: this.windows, now, blockedUntil, others })
    turn.changes.waiting = this.queue.slots
    return turn.changes
  }

  async #refresh() {
    const state = await this.#budget.read({ id: this.#lastId, keepMs: this.windows.keepMs })
    this.#adopt(state)
    this.#lastId = state.calls.at(-1)?.id ?? this.#lastId
  }

  #adopt({ now, blockedUntil, calls, holds }: BudgetState) {
    this.#clockOffset = now - this.clock.now()
    this.blockedUntil = blockedUntil
    for (const { priority, at } of calls) this.windows.count(priority, at)
    this.windows.replaceHolds(holds)
  }

  async #prune() {
    await this.#budget.prune(this.windows.keepMs).catch(() => undefined)
  }
}

interface Turn {
  changes: BudgetChanges
  granted: Grant[]
  now: number
}

const newTurn = (): Turn => ({
  changes: { calls: [], holds: [], used: [], waiting: new Map() },
  granted: [],
  now: 0,
})
