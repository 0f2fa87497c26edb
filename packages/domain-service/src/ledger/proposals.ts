import { name, now, type Sql, type Statement, sql } from '@domains-and-files/persistence'
import type { ChangeEffect, ChangeRequest } from './change.ts'
import { cancelAll, findByKey, storeEffects } from './changes.ts'
import { notify, readChange } from './stored-change.ts'

const changes = name('changes')

/** How long a change waits for an approval. */
const waitMs = 14 * 86_400_000

/** Changes that wait for another person's approval: they are in the queue, but no batch takes them. */
export class Proposals {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  /** As `findByKey`. */
  find(request: ChangeRequest): Promise<number | undefined> {
    return findByKey(this.#sql, request)
  }

  /** What a proposed change requests; undefined where it is not proposed any more. */
  async read(id: number): Promise<ChangeRequest | undefined> {
    const row = await this.#sql.get<{ request: string }>(
      sql`select request from ${changes} where id = ${id} and status = 'proposed'`,
    )
    // `Ledger.accept` wrote this text.
    return row && (JSON.parse(row.request) as ChangeRequest)
  }

  /**
   * Replaces the effect of a proposed change, and with an `approval` queues it.
   * @returns undefined where it is not proposed any more: of several, one wins.
   */
  update(id: number, effect: ChangeEffect, approval?: { by: string; request: ChangeRequest }) {
    if (!approval) return this.#update(id, sql`status = status`, effect)
    const { by, request } = approval
    const decision = sql`status = 'queued', approved_by = ${by}, request = ${JSON.stringify(request)}`
    return this.#update(id, decision, effect)
  }

  /** As `update`. */
  reject(id: number, reason: string | undefined) {
    const decision = sql`status = 'rejected', reason = ${reason}, ended_at = ${now}, request = null`
    return this.#update(id, decision)
  }

  async #update(id: number, set: Statement, effect?: ChangeEffect) {
    await this.expire()
    return this.#sql.transaction(async (transaction) => {
      const updated = await transaction.run(
        sql`update ${changes} set ${set} where id = ${id} and status = 'proposed'`,
      )
      if (updated === 0) return undefined
      if (effect) await storeEffects(transaction, [{ ...effect, id }])
      const change = await readChange(transaction, id)
      await notify(transaction, change.domain)
      return change
    })
  }

  /** Cancels proposals that were not approved within 14 days. */
  async expire(): Promise<void> {
    const isExpired = sql`status = 'proposed' and created_at <= ${now} - ${waitMs}`
    await cancelAll(this.#sql, isExpired, 'expired')
  }
}
