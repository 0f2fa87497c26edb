import type { Postgres, Transaction } from '@domains-and-files/persistence'
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

/** The rows of one account's budget. A turn locks the budget, so that processes take from it one after another. */
export class CallBudget {
  readonly #postgres: Postgres
  readonly #account: string
  readonly #replica: string

  constructor(postgres: Postgres, { account, replica }: { account: string; replica: string }) {
    this.#postgres = postgres
    this.#account = account
    this.#replica = replica
  }

  /** Creates the budget of an account that has none. */
  async open(): Promise<void> {
    await this.#postgres.query(
      'insert into domain_service.budgets (account) values ($1) on conflict do nothing',
      [this.#account],
    )
  }

  /** The state without a turn: others may take from it at any time. */
  read(since: { id: number; keepMs: number }): Promise<BudgetState> {
    return this.#read(this.#postgres, since)
  }

  /** Deletes calls that no window counts any more, and holds that have expired. */
  async prune(keepMs: number): Promise<void> {
    await this.#postgres.query(
      'delete from domain_service.call_holds where account = $1 and until <= domain_service.now_ms()',
      [this.#account],
    )
    await this.#postgres.query(
      'delete from domain_service.calls where account = $1 and at <= domain_service.now_ms() - $2',
      [this.#account, keepMs],
    )
  }

  /**
   * One turn: gives back holds, reads the state, and takes what `take` decides.
   * @returns the id of the last call counted so far.
   */
  turn(
    before: { released: string[]; pauseMs: number },
    since: { id: number; keepMs: number },
    take: (state: BudgetState) => BudgetChanges,
  ): Promise<number> {
    return this.#postgres.transaction(async (transaction) => {
      await transaction.query(lock, [this.#account, before.pauseMs])
      if (before.released.length > 0)
        await transaction.query('delete from domain_service.call_holds where id = any($1)', [
          before.released,
        ])
      const state = await this.#read(transaction, since)
      const changes = take(state)
      await this.#take(transaction, changes)
      await this.#publish(transaction, changes.waiting)
      const last = await this.#count(transaction, changes.calls)
      return last ?? state.calls.at(-1)?.id ?? since.id
    })
  }

  async #read(
    database: Pick<Transaction, 'query'>,
    since: { id: number; keepMs: number },
  ): Promise<BudgetState> {
    const [row] = await database.query<{ state: BudgetState }>(read, [
      this.#account,
      since.id,
      since.keepMs,
      this.#replica,
    ])
    if (!row) throw new Error('no budget')
    return row.state
  }

  async #take(transaction: Transaction, { holds, used }: BudgetChanges) {
    for (const { id, priority, slots } of holds)
      await transaction.query(
        `insert into domain_service.call_holds (id, account, priority, slots, until)
         values ($1, $2, $3, $4, domain_service.now_ms() + $5)`,
        [id, this.#account, priority, slots, holdMs],
      )
    for (const id of used) await transaction.query(use, [id, holdMs])
    if (used.length > 0)
      await transaction.query(
        'delete from domain_service.call_holds where id = any($1) and slots <= 0',
        [used],
      )
  }

  async #publish(transaction: Transaction, waiting: ReadonlyMap<Priority, number>) {
    await transaction.query(
      'delete from domain_service.call_waiters where account = $1 and replica = $2',
      [this.#account, this.#replica],
    )
    for (const [priority, calls] of waiting)
      await transaction.query(
        `insert into domain_service.call_waiters (account, replica, priority, calls, until)
         values ($1, $2, $3, $4, domain_service.now_ms() + $5)`,
        [this.#account, this.#replica, priority, calls, waiterMs],
      )
  }

  async #count(transaction: Transaction, calls: Priority[]): Promise<number | undefined> {
    if (calls.length === 0) return undefined
    const rows = await transaction.query<{ id: number }>(
      `insert into domain_service.calls (account, at, priority)
       select $1, domain_service.now_ms(), priority from unnest($2::text[]) priority returning id`,
      [this.#account, calls],
    )
    return Math.max(...rows.map(({ id }) => id))
  }
}

const use = `update domain_service.call_holds set slots = slots - 1, until = domain_service.now_ms() + $2
  where id = $1`

const lock = `update domain_service.budgets
  set blocked_until = greatest(blocked_until, case when $2 > 0 then domain_service.now_ms() + $2 else 0 end)
  where account = $1`

const read = `select json_build_object(
    'now', domain_service.now_ms(),
    'blockedUntil', blocked_until,
    'calls', coalesce((select json_agg(json_build_object('id', id, 'at', at, 'priority', priority) order by id)
      from domain_service.calls
      where calls.account = $1 and id > $2 and at > domain_service.now_ms() - $3), '[]'),
    'holds', coalesce((select json_agg(json_build_object('priority', priority, 'slots', slots))
      from domain_service.call_holds
      where call_holds.account = $1 and until > domain_service.now_ms()), '[]'),
    'waiters', coalesce((select json_agg(json_build_object('priority', priority, 'calls', calls))
      from domain_service.call_waiters
      where call_waiters.account = $1 and replica <> $4 and until > domain_service.now_ms()), '[]')
  ) as state from domain_service.budgets where account = $1`
