import { name, now, type Sql, type Statement, sql } from '@domains-and-files/persistence'
import { changeClosed } from '../errors.ts'
import type { ChangeEffect, ChangeRequest } from './change.ts'
import { cancelAll, notify, storeEffects } from './changes.ts'
import { readChange, type StoredChange } from './stored-change.ts'

const changes = name('changes')

/** How long a proposed change waits for an approval. */
const proposedMs = 14 * 86_400_000

/** Proposed changes. Each method throws 409 `change_closed` for one that is not proposed any more: of several, one wins. */
export class Proposals {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  async read(id: number): Promise<ChangeRequest> {
    const row = await this.#sql.get<{ request: string }>(
      sql`select request from ${changes} where id = ${id} and status = 'proposed'`,
    )
    if (!row) throw changeClosed(id, (await readChange(this.#sql, id)).status)
    return JSON.parse(row.request) as ChangeRequest // `insertChange` wrote this text.
  }

  /** Replaces the effect of a proposed change, and with an `approval` queues it. */
  update(id: number, effect: ChangeEffect, approval?: { by: string; request: ChangeRequest }) {
    const decision = approval
      ? sql`status = 'queued', approved_by = ${approval.by}, request = ${JSON.stringify(approval.request)}`
      : sql`status = status`
    return this.#decide(id, decision, effect)
  }

  reject(id: number, reason: string | undefined) {
    return this.#decide(id, sql`status = 'rejected', reason = ${reason}, ended_at = ${now}, request = null`)
  }

  async #decide(id: number, decision: Statement, effect?: ChangeEffect): Promise<StoredChange> {
    await this.expire()
    return this.#sql.transaction(async (transaction) => {
      const updated = await transaction.run(
        sql`update ${changes} set ${decision} where id = ${id} and status = 'proposed'`,
      )
      if (updated > 0 && effect) await storeEffects(transaction, [{ ...effect, id }])
      const change = await readChange(transaction, id)
      if (updated === 0) throw changeClosed(id, change.status)
      await notify(transaction, change.domain)
      return change
    })
  }

  /** Cancels proposals that were not approved within 14 days. */
  async expire(): Promise<void> {
    const isExpired = sql`status = 'proposed' and is_async = 1 and created_at <= ${now} - ${proposedMs}`
    await cancelAll(this.#sql, isExpired, 'expired')
  }
}
