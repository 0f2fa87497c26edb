import { join, list, name, now, type Postgres, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { leaseNow } from '../ledger/replicas/leases.ts'
import { type BudgetShare, type BudgetState, type CallBudget, holdMs, keepMs } from './call-budget.ts'
import { type Priority, priorities, SlotCounts } from './call-windows.ts'

const waiterMs = 3_000

const budgets = name('budgets')
const calls = name('calls')
const holds = name('call_holds')
const waiters = name('call_waiters')

/** The budget of all replicas, in the database. A turn locks it, so that processes take from it one after another. */
export class SharedBudget implements CallBudget {
  readonly isShared = true
  /** Health asks the database itself. */
  readonly isStored = true
  readonly #sql: Postgres
  readonly #account: string
  readonly #replica: string
  /** A process has one hold for each priority. */
  readonly #holdIds: string[]

  private constructor(database: Postgres, { account, replica }: Process) {
    this.#sql = database
    this.#account = account
    this.#replica = replica
    this.#holdIds = priorities.map((priority) => this.#idOf(priority))
  }

  /** Creates the budget of an account that has none. */
  static async open(database: Postgres, process: Process): Promise<SharedBudget> {
    await database.run(sql`insert into ${budgets} (account) values (${process.account}) on conflict do nothing`)
    return new SharedBudget(database, process)
  }

  read(since: number): Promise<BudgetState> {
    return this.#read(this.#sql, since)
  }

  turn(since: number, pauseMs: number, take: (state: BudgetState) => BudgetShare) {
    return this.#sql.transaction(async (transaction) => {
      // Also locks the budget's row until the transaction ends.
      await transaction.run(sql`update ${budgets} set blocked_until = greatest(blocked_until,
        case when ${pauseMs} > 0 then ${now} + ${pauseMs} else 0 end) where account = ${this.#account}`)
      const state = await this.#read(transaction, since)
      const share = take(state)
      await this.#publish(transaction, share)
      return this.#count(transaction, share.calls)
    })
  }

  // One statement, since every turn of every replica waits for it.
  async #read(database: SqlTransaction, since: number) {
    const row = await database.get<{ state: BudgetState }>(sql`select json_build_object(
        'now', ${now},
        'blockedUntil', blocked_until,
        'calls', coalesce((select json_agg(json_build_object('id', id, 'at', at, 'priority', priority) order by id)
          from ${calls} where calls.account = budgets.account and id > ${since} and at > ${now} - ${keepMs}), '[]'),
        'holds', coalesce((select json_agg(json_build_object('priority', priority, 'slots', slots))
          from ${holds} where call_holds.account = budgets.account and id not in (${list(this.#holdIds)})
            and until > ${leaseNow}), '[]'),
        'waiters', coalesce((select json_agg(json_build_object('priority', priority, 'slots', calls))
          from ${waiters} where call_waiters.account = budgets.account and replica <> ${this.#replica}
            and priority in (${list(priorities)}) and until > ${leaseNow}), '[]')
      ) as state from ${budgets} where account = ${this.#account}`)
    if (!row) throw new Error('no budget')
    return row.state
  }

  /** Replaces what this process holds and waits for. */
  async #publish(transaction: SqlTransaction, share: BudgetShare) {
    const [held, waiting] = [SlotCounts.sum(share.held), SlotCounts.sum(share.waiting)]
    await transaction.run(sql`with freed as (delete from ${holds} where id in (${list(this.#holdIds)}))
      delete from ${waiters} where account = ${this.#account} and replica = ${this.#replica}`)
    for (const [priority, slots] of held)
      await transaction.run(sql`insert into ${holds} (id, account, priority, slots, until)
        values (${this.#idOf(priority)}, ${this.#account}, ${priority}, ${slots}, ${leaseNow} + ${holdMs})`)
    for (const [priority, slots] of waiting)
      await transaction.run(sql`insert into ${waiters} (account, replica, priority, calls, until)
        values (${this.#account}, ${this.#replica}, ${priority}, ${slots}, ${leaseNow} + ${waiterMs})`)
  }

  #idOf(priority: string): string {
    return `${this.#account} ${this.#replica} ${priority}`
  }

  // Also deletes calls that no window counts any more, and expired holds.
  async #count(transaction: SqlTransaction, made: Priority[]) {
    if (made.length === 0) return undefined
    const ofAccount = sql`account = ${this.#account}`
    const rows = await transaction.all<{ id: number }>(sql`
      with outdated as (delete from ${calls} where ${ofAccount} and at <= ${now} - ${keepMs}),
        expired as (delete from ${holds} where ${ofAccount} and until <= ${leaseNow})
      insert into ${calls} (account, at, priority)
      values ${join(made.map((priority) => sql`(${this.#account}, ${now}, ${priority})`))} returning id`)
    return Math.max(...rows.map(({ id }) => id))
  }
}

interface Process {
  account: string
  replica: string
}
