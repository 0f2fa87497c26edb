import {
  join,
  list,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import { leaseNow } from '../ledger/replicas/leases.ts'
import type { Priority, StoredCall } from './call-windows.ts'

/** The shared budget of one registrar account, as a process reads it. Times are the database's. */
export interface BudgetState {
  now: number
  blockedUntil: number
  /** Calls that this process has not counted yet, oldest first. */
  calls: (StoredCall & { id: number })[]
  /** Slots held for calls to come, of all processes. */
  holds: { priority: Priority; slots: number }[]
  /** New slots that other processes wait for. */
  waiters: { priority: Priority; calls: number }[]
}

/** What a process takes from the budget in one turn. */
export interface BudgetChanges {
  calls: Priority[]
  holds: { id: string; priority: Priority; slots: number }[]
  /** Holds of which one slot has become a call. */
  used: string[]
  /** New slots that this process still waits for. */
  waiting: ReadonlyMap<Priority, number>
}

/** A hold that is neither used nor released any more, since its process has died, expires after this time. */
export const holdMs = 120_000
const waiterMs = 3_000

const budgets = name('budgets')
const calls = name('calls')
const holds = name('call_holds')
const waiters = name('call_waiters')

/** The rows of one account's budget. A turn locks the budget, so that processes take from it one after another. */
export class CallBudget {
  readonly #sql: Sql
  readonly #account: string
  readonly #replica: string

  constructor(database: Sql, { account, replica }: { account: string; replica: string }) {
    this.#sql = database
    this.#account = account
    this.#replica = replica
  }

  /** Creates the budget of an account that has none. */
  async open(): Promise<void> {
    await this.#sql.run(
      sql`insert into ${budgets} (account) values (${this.#account}) on conflict do nothing`,
    )
  }

  /** The state without a turn: others may take from it at any time. */
  read(since: { id: number; keepMs: number }): Promise<BudgetState> {
    return this.#read(this.#sql, since)
  }

  /** Deletes calls that no window counts any more, and holds that have expired. */
  async prune(keepMs: number): Promise<void> {
    const ofAccount = sql`account = ${this.#account}`
    await this.#sql.run(sql`delete from ${holds} where ${ofAccount} and until <= ${leaseNow}`)
    await this.#sql.run(sql`delete from ${calls} where ${ofAccount} and at <= ${now} - ${keepMs}`)
  }

  /**
   * One turn: gives back holds, reads the state, and takes what `take` decides.
   * @returns the id of the last call counted so far.
   */
  turn(
    { released, pauseMs }: { released: string[]; pauseMs: number },
    since: { id: number; keepMs: number },
    take: (state: BudgetState) => BudgetChanges,
  ): Promise<number> {
    return this.#sql.transaction(async (transaction) => {
      // Locks the budget, too.
      await transaction.run(sql`update ${budgets} set blocked_until = greatest(blocked_until,
        case when ${pauseMs} > 0 then ${now} + ${pauseMs} else 0 end) where account = ${this.#account}`)
      if (released.length > 0)
        await transaction.run(sql`delete from ${holds} where id in (${list(released)})`)
      const state = await this.#read(transaction, since)
      const changes = take(state)
      await this.#take(transaction, changes)
      await this.#publish(transaction, changes.waiting)
      const last = await this.#count(transaction, changes.calls)
      return last ?? state.calls.at(-1)?.id ?? since.id
    })
  }

  // One statement, since every turn of every replica waits for it.
  async #read(database: SqlTransaction, since: { id: number; keepMs: number }) {
    const row = await database.get<{ state: BudgetState }>(sql`select json_build_object(
        'now', ${now},
        'blockedUntil', blocked_until,
        'calls', coalesce((select json_agg(json_build_object('id', id, 'at', at, 'priority', priority) order by id)
          from ${calls} where calls.account = budgets.account and id > ${since.id} and at > ${now} - ${since.keepMs}), '[]'),
        'holds', coalesce((select json_agg(json_build_object('priority', priority, 'slots', slots))
          from ${holds} where call_holds.account = budgets.account and until > ${leaseNow}), '[]'),
        'waiters', coalesce((select json_agg(json_build_object('priority', priority, 'calls', calls))
          from ${waiters} where call_waiters.account = budgets.account and replica <> ${this.#replica}
            and until > ${leaseNow}), '[]')
      ) as state from ${budgets} where account = ${this.#account}`)
    if (!row) throw new Error('no budget')
    return row.state
  }

  async #take(transaction: SqlTransaction, taken: BudgetChanges) {
    for (const { id, priority, slots } of taken.holds)
      await transaction.run(sql`insert into ${holds} (id, account, priority, slots, until)
        values (${id}, ${this.#account}, ${priority}, ${slots}, ${leaseNow} + ${holdMs})`)
    for (const id of taken.used)
      await transaction.run(
        sql`update ${holds} set slots = slots - 1, until = ${leaseNow} + ${holdMs} where id = ${id}`,
      )
    if (taken.used.length > 0)
      await transaction.run(
        sql`delete from ${holds} where id in (${list(taken.used)}) and slots <= 0`,
      )
  }

  async #publish(transaction: SqlTransaction, waiting: ReadonlyMap<Priority, number>) {
    await transaction.run(
      sql`delete from ${waiters} where account = ${this.#account} and replica = ${this.#replica}`,
    )
    for (const [priority, count] of waiting)
      await transaction.run(sql`insert into ${waiters} (account, replica, priority, calls, until)
        values (${this.#account}, ${this.#replica}, ${priority}, ${count}, ${leaseNow} + ${waiterMs})`)
  }

  async #count(transaction: SqlTransaction, made: Priority[]): Promise<number | undefined> {
    if (made.length === 0) return undefined
    const rows = await transaction.all<{
      id: number
    }>(sql`insert into ${calls} (account, at, priority)
      values ${join(made.map((priority) => sql`(${this.#account}, ${now}, ${priority})`))} returning id`)
    return Math.max(...rows.map(({ id }) => id))
  }
}
