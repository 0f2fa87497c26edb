import { name, now, type Sql, sql } from '@domains-and-files/persistence'
import type { ChangeEffect, ChangeRequest, StoredChange } from './change.ts'
import { effectOf, findByKey, insertChange } from './changes.ts'
import { notify } from './replicas/leases.ts'
import { appendChangeEvents, readChange } from './stored-change.ts'

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

  /** @throws as `Ledger.accept`. */
  add(
    request: ChangeRequest,
    effect: ChangeEffect,
  ): Promise<{ change: StoredChange; isNew: boolean }> {
    return this.#sql.transaction(async (transaction) => {
      const options = { isAsync: true, status: 'proposed' } as const
      const { id, isNew } = await insertChange(transaction, request, options)
      if (isNew) {
        const set = await effectOf(transaction, effect)
        await transaction.run(sql`update ${changes} set ${set} where id = ${id}`)
        await appendChangeEvents(transaction, [id])
      }
      return { change: await readChange(transaction, id), isNew }
    })
  }

  /** What a proposed change requests; undefined where it is not proposed any more. */
  async read(id: number): Promise<ChangeRequest | undefined> {
    const row = await this.#sql.get<{ request: string }>(
      sql`select request from ${changes} where id = ${id} and status = 'proposed'`,
    )
    // `add` wrote this text.
    return row && (JSON.parse(row.request) as ChangeRequest)
  }

  /** A proposed change does something else now. */
  async update(id: number, effect: ChangeEffect): Promise<void> {
    await this.#sql.transaction(async (transaction) =>
      transaction.run(sql`update ${changes} set ${await effectOf(transaction, effect)}
        where id = ${id} and status = 'proposed'`),
    )
  }

  /** Queues a proposed change. @returns undefined where it is not proposed any more: of several, one wins. */
  approve(
    id: number,
    { by, request, effect }: { by: string; request: ChangeRequest; effect: ChangeEffect },
  ): Promise<StoredChange | undefined> {
    return this.#sql.transaction(async (transaction) => {
      const approved = await transaction.run(sql`update ${changes} set status = 'queued',
          approved_by = ${by}, request = ${JSON.stringify(request)}, ${await effectOf(transaction, effect)}
        where id = ${id} and status = 'proposed'`)
      if (approved === 0) return undefined
      await notify(transaction, request.domain)
      return readChange(transaction, id)
    })
  }

  /** @returns undefined where it is not proposed any more. */
  reject(id: number, reason: string | undefined): Promise<StoredChange | undefined> {
    return this.#sql.transaction(async (transaction) => {
      const rejected =
        await transaction.run(sql`update ${changes} set status = 'rejected', reason = ${reason},
          ended_at = ${now}, request = null
        where id = ${id} and status = 'proposed'`)
      return rejected > 0 ? readChange(transaction, id) : undefined
    })
  }

  /** Cancels what nobody has approved in 14 days. */
  async expire(): Promise<void> {
    await this.#sql.run(sql`update ${changes} set status = 'cancelled', reason = 'expired',
        ended_at = ${now}, request = null, idempotency_key = null
      where status in ('queued', 'proposed') and is_async = 1 and status = 'proposed' and created_at <= ${now} - ${waitMs}`)
  }
}
