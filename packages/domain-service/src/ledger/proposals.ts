import { name, now, type Sql, type Statement, sql } from '@domains-and-files/persistence'
import type { ChangeEffect, ChangeRequest } from './change.ts'
import { findByKey, storeEffects } from './changes.ts'
import { notify, readChange, type StoredChange } from './stored-change.ts'

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

  /** Replaces the effect of a proposed change. @returns as `approve`. */
  update(id: number, effect: ChangeEffect) {
    return this.#update(id, sql`status = 'proposed'`, effect)
  }

  /** Queues a proposed change. @returns undefined where it is not proposed any more: of several, one wins. */
  approve(
    id: number,
    { by, request, effect }: { by: string; request: ChangeRequest; effect: ChangeEffect },
  ) {
    const decision = sql`status = 'queued', approved_by = ${by}, request = ${JSON.stringify(request)}`
    return this.#update(id, decision, effect)
  }

  /** As `approve`. */
  reject(id: number, reason: string | undefined) {
    const decision = sql`status = 'rejected', reason = ${reason}, ended_at = ${now}, request = null`
    return this.#update(id, decision)
  }

  async #update(
    id: number,
    set: Statement,
    effect?: ChangeEffect,
  ): Promise<StoredChange | undefined> {
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
    await this.#sql.run(sql`update ${changes} set status = 'cancelled', reason = 'expired',
        ended_at = ${now}, request = null, idempotency_key = null
      where status in ('queued', 'proposed') and is_async = 1 and status = 'proposed' and created_at <= ${now} - ${waitMs}`)
  }
}
