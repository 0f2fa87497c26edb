import { join, name, now, type Postgres, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { leaseNow } from '../ledger/replicas/leases.ts'
import { type BudgetShare, type BudgetState, type CallBudget, holdMs, type KeptPlace, keepMs } from './call-budget.ts'
import { addSlots, type Priority, priorities, type Slots } from './call-windows.ts'

const waiterMs = 3_000

const budgets = name('budgets')
const calls = name('calls')
const shares = name('call_shares')

/** What another process has told, and how many milliseconds ago. */
interface Told {
  share: Record<'held' | 'waiting', (Slots & Partial<KeptPlace>)[]> & Pick<BudgetShare, 'claims'>
  age: number
}

/** The budget of all replicas, in the database. A turn locks it, so that processes take from it one after another. */
export class SharedBudget implements CallBudget {
  readonly isShared = true
  readonly #sql: Postgres
  readonly #account: string
  readonly #replica: string
  /** Of the last call that this process has read or made. */
  #lastId = 0

  constructor(database: Postgres, { account, replica }: { account: string; replica: string }) {
    this.#sql = database
    this.#account = account
    this.#replica = replica
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
      const { calls: made, held, waiting, claims } = take(state)
      const share = JSON.stringify({ held: [...held], waiting: [...waiting], claims }, toldKeys)
      await transaction.run(sql`insert into ${shares} (account, replica, share, at)
        values (${this.#account}, ${this.#replica}, ${share}, ${leaseNow})
        on conflict (account, replica) do update set share = excluded.share, at = excluded.at`)
      return (await this.#count(transaction, made)) ?? state.calls.at(-1)?.id ?? since
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
  async #read(database: SqlTransaction, since: number): Promise<BudgetState> {
    const ofAccount = sql`account = ${this.#account}`
    const row = await database.get<{ state: BudgetState; others: Told[] }>(sql`
      select json_build_object(
          'now', ${now},
          'blockedUntil', coalesce((select blocked_until from ${budgets} where ${ofAccount}), 0),
          'calls', coalesce((select json_agg(json_build_object('id', id, 'at', at, 'priority', priority) order by id)
            from ${calls} where ${ofAccount} and id > ${since} and at > ${now} - ${keepMs}), '[]')) as state,
        coalesce((select json_agg(json_build_object('share', share::json, 'age', ${leaseNow} - at))
          from ${shares} where ${ofAccount} and replica <> ${this.#replica}), '[]') as others`)
    if (!row) throw new Error('no budget')
    const { state, others } = row
    const told = (part: 'held' | 'waiting', maxMs = Infinity) =>
      others.flatMap(({ share, age }) => (age < maxMs ? share[part] : []))
    const held = new Set(told('held', holdMs))
    return {
      ...state,
      holds: sumOf(held),
      // Replicas of another version may have other priorities.
      waiters: sumOf(told('waiting', waiterMs)).filter(({ priority }) => priorities.includes(priority)),
      places: [...told('held'), ...told('waiting')]
        .filter((each): each is KeptPlace => (each.absentUntil ?? 0) > state.now)
        .map((place) => ({ ...place, isHeld: held.has(place) })),
      claims: others.flatMap(({ share }) => share.claims ?? []), // Replicas of an earlier version have none.
    }
  }

  // Also deletes calls that no window counts any more, and what ended processes told.
  async #count(transaction: SqlTransaction, made: Priority[]) {
    if (made.length === 0) return undefined
    const ofAccount = sql`account = ${this.#account}`
    const rows = await transaction.all<{ id: number }>(sql`
      with outdated as (delete from ${calls} where ${ofAccount} and at <= ${now} - ${keepMs}),
        ended as (delete from ${shares} where ${ofAccount} and at <= ${leaseNow} - ${keepMs})
      insert into ${calls} (account, at, priority)
      values ${join(made.map((priority) => sql`(${this.#account}, ${now}, ${priority})`))} returning id`)
    return Math.max(...rows.map(({ id }) => id))
  }
}

const placeKeys = ['id', 'priority', 'slots', 'callers', 'domain', 'absentUntil', 'toldFor', 'isCertain']
const toldKeys = ['held', 'waiting', 'claims', ...placeKeys]

function sumOf(all: Iterable<Slots>): Slots[] {
  const sums: Slots[] = []
  for (const { priority, slots } of all) addSlots(sums, { priority, slots })
  return sums
}
