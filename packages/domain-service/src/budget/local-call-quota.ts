import type { Timer } from '@domains-and-files/http'
import { join, name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { CallQuota, type Grant, type Hold, type Priority, type QuotaOptions } from './call-quota.ts'
import type { StoredCall } from './call-windows.ts'

interface LocalOptions extends QuotaOptions {
  store: Pick<CallStore, 'load' | 'add' | 'isComplete'>
}

/** The quota of the only process that calls the registrar: counted in memory, calls kept in a store. */
export class LocalCallQuota extends CallQuota {
  readonly #store: LocalOptions['store']
  #timer: Timer | undefined

  private constructor({ store, ...options }: LocalOptions) {
    super(options)
    this.#store = store
  }

  /** Counts the calls that were made before. */
  static async open(options: LocalOptions): Promise<LocalCallQuota> {
    const quota = new LocalCallQuota(options)
    quota.windows.restore(await options.store.load(quota.#outdated()), quota.now())
    return quota
  }

  pause(milliseconds: number) {
    this.blockedUntil = Math.max(this.blockedUntil, this.now() + milliseconds)
  }

  get isStored(): boolean {
    return this.#store.isComplete(this.#outdated())
  }

  override close() {
    super.close()
    this.#timer?.cancel()
  }

  protected now(): number {
    return this.clock.now()
  }

  protected serve() {
    const { windows, blockedUntil } = this
    const now = this.now()
    const wakeAt = this.queue.serve({ windows, now, blockedUntil })
    this.#timer?.cancel()
    if (wakeAt < Number.POSITIVE_INFINITY)
      this.#timer = this.clock.setTimer(() => this.serve(), Math.max(1, wakeAt - now))
  }

  protected count(priority: Priority) {
    const at = this.now()
    this.windows.count(priority, at)
    this.#store.add({ at, priority }, this.#outdated())
  }

  protected hold({ priority, slots }: Hold) {
    this.windows.hold(priority, slots)
  }

  protected useHeld({ priority }: Hold) {
    this.windows.hold(priority, -1)
    this.count(priority)
  }

  protected release({ priority }: Hold, unused: number) {
    this.windows.hold(priority, -unused)
  }

  protected settle({ resolve }: Grant) {
    resolve()
  }

  #outdated(): number {
    return this.now() - this.windows.keepMs
  }
}

const calls = name('calls')

/**
 * Counted calls in SQLite, so that a restart does not exceed the registrar's limits. A full or failing disk loses
 * nothing for this process: calls not stored yet are kept and stored with a later one.
 */
export class CallStore {
  readonly #sql: Sql
  readonly #account: string
  readonly #onFailure: (error: unknown) => void
  #unstored: StoredCall[] = []
  #isFailing = false
  #flushing: Promise<void> | undefined

  /** `onFailure` is called once per outage. */
  constructor(database: Sql, account: string, onFailure: (error: unknown) => void) {
    this.#sql = database
    this.#account = account
    this.#onFailure = onFailure
  }

  /** Calls made after `since`, oldest first. */
  load(since: number): Promise<StoredCall[]> {
    return this.#sql.all(sql`select at, priority from ${calls}
      where account = ${this.#account} and at > ${since} order by at`)
  }

  /** Stores the call in the background: one that cannot be stored must not fail a read. */
  add(call: StoredCall, forgetBefore: number) {
    this.#unstored.push(call)
    this.#unstored = this.#unstored.filter(({ at }) => at > forgetBefore)
    this.#flush(forgetBefore)
  }

  /** False while calls cannot be stored; tries again to store them. */
  isComplete(forgetBefore: number): boolean {
    if (this.#isFailing) this.#flush(forgetBefore)
    return !this.#isFailing
  }

  /** Resolves when what was added is stored, or cannot be. */
  async settle(): Promise<void> {
    await this.#flushing
  }

  #flush(forgetBefore: number) {
    this.#flushing ??= this.#storeAll(forgetBefore).finally(() => {
      this.#flushing = undefined
    })
  }

  async #storeAll(forgetBefore: number) {
    try {
      while (this.#unstored.length > 0) {
        const some = new Set(this.#unstored)
        await this.#sql.transaction((transaction) => this.#insert(transaction, some, forgetBefore))
        this.#unstored = this.#unstored.filter((call) => !some.has(call))
        this.#isFailing = false
      }
    } catch (error) {
      if (!this.#isFailing) this.#onFailure(error)
      this.#isFailing = true
    }
  }

  async #insert(transaction: SqlTransaction, some: Set<StoredCall>, forgetBefore: number) {
    const account = this.#account
    await transaction.run(
      sql`delete from ${calls} where account = ${account} and at <= ${forgetBefore}`,
    )
    const rows = Array.from(some, ({ at, priority }) => sql`(${account}, ${at}, ${priority})`)
    await transaction.run(sql`insert into ${calls} (account, at, priority) values ${join(rows)}`)
  }
}
