import { join, list, name, now, type Postgres, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { leaseNow } from '../ledger/replicas/leases.ts'
import { type BudgetShare, type BudgetState, type CallBudget, holdMs, keepMs } from './call-budget.ts'
import { addSlots, type Priority, priorities, type Slots } from './call-windows.ts'

const waiterMs = 3_000

const budgets = name('budgets')
const calls = name('calls')
const holds = name('call_holds')
const waiters = name('call_waiters')

/** The budget of all replicas, in the database. A turn locks it, so that processes take from it one after another. */
export class SharedBudget implements CallBudget {
  readonly isShared = true
  readonly #sql: Postgres
  readonly #account: string
  readonly #replica: string
  /** Of the ids of its holds: a process has one for each priority. */
  readonly #prefix: string
  /** Of the last call that this process has read or made. */
  #lastId = 0

  constructor(database: Postgres, { account, replica }: { account: string; replica: string }) {
    this.#sql = database
    this.#account = account
    this.#replica = replica
    this.#prefix = `${account} ${replica} `
  }

  async turn(pauseMs: number, take: (state: BudgetState) => BudgetShare): Promise<void> {
    const since = this.#lastId
    this.#lastId = 0 // If it fails: a standby that is promoted may lack some calls, and give their ids again.
    this.#lastId = await this.#sql.transaction(async (transaction) => {
      // Also locks the budget's row until the transaction ends.
      await transaction.run(sql`insert into ${budgets} as known (account, blocked_until)
        values (${this.#account}, case when ${pauseMs} > 0 then ${now} + ${pauseMs} else 0 end)
        on conflict (account) do update set blocked_until = greatest(known.blocked_until, excluded.blocked_until)`)
      const state = await this.#read(transaction, since)
      const share = take(state)
      await this.#publish(transaction, share)
      return (await this.#count(transaction, share.calls)) ?? state.calls.at(-1)?.id ?? since
    })
  }

  async read(): Promise<BudgetState> {
    const since = this.#lastId
    this.#lastId = 0 // As in a turn.
    const state = await this.#read(this.#sql, since)
    this.#lastId = state.calls.at(-1)?.id ?? since
    return state
  }

  // One statement, since every turn of every replica waits for it.
  async #read(database: SqlTransaction, since: number) {
    const ofAccount = sql`account = ${this.#account}`
    const row = await database.get<{ state: BudgetState }>(sql`select json_build_object(
        'now', ${now},
        'blockedUntil', coalesce((select blocked_until from ${budgets} where ${ofAccount}), 0),
        'calls', coalesce((select json_agg(json_build_object('id', id, 'at', at, 'priority', priority) order by id)
          from ${calls} where ${ofAccount} and id > ${since} and at > ${now} - ${keepMs}), '[]'),
        'holds', coalesce((select json_agg(json_build_object('priority', priority, 'slots', slots))
          from ${holds} where ${ofAccount} and not starts_with(id, ${this.#prefix}) and until > ${leaseNow}), '[]'),
        'waiters', coalesce((select json_agg(json_build_object('priority', priority, 'slots', calls))
          from ${waiters} where ${ofAccount} and replica <> ${this.#replica}
            and priority in (${list(priorities)}) and until > ${leaseNow}), '[]')) as state`)
    if (!row) throw new Error('no budget')
    return row.state
  }

  /** Replaces what this process holds and waits for. */
  async #publish(transaction: SqlTransaction, share: BudgetShare) {
    const [held, waiting]: [Slots[], Slots[]] = [[], []]
    for (const each of share.held) addSlots(held, each)
    for (const each of share.waiting) addSlots(waiting, each)
    const ofAccount = sql`account = ${this.#account}`
    await transaction.run(sql`with freed as (delete from ${holds} where ${ofAccount} and starts_with(id, ${this.#prefix}))
      delete from ${waiters} where ${ofAccount} and replica = ${this.#replica}`)
    for (const { priority, slots } of held)
      await transaction.run(sql`insert into ${holds} (id, account, priority, slots, until)
        values (${this.#prefix + priority}, ${this.#account}, ${priority}, ${slots}, ${leaseNow} + ${holdMs})`)
    for (const { priority, slots } of waiting)
      await transaction.run(sql`insert into ${waiters} (account, replica, priority, calls, until)
        values (${this.#account}, ${this.#replica}, ${priority}, ${slots}, ${leaseNow} + ${waiterMs})`)
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
