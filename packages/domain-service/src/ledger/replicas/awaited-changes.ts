import { setTimeout as sleep } from 'node:timers/promises'
import { BackgroundTask, list, name, type Sql, sql } from '@domains-and-files/persistence'
import { leaseNow } from './leases.ts'

/** How long after its last renewal a batch may still begin a change. Clients get their answers later than that. */
export const awaitedMs = 4_000
/** A change that has been expired for this long is cancelled: its client does not wait any more. */
export const abandonedMs = 26_000
const renewMs = 1_000
/** Margin for the drift of the database's clock within `awaitedMs`. */
const clockMarginMs = 100

const changes = name('changes')

interface Wait {
  /** The change cannot be begun after this time of the monotonic clock, unless it is renewed. */
  expiresAt: number
  onExpired: (cause: unknown) => void
  /** It is not renewed any more. */
  isEnding?: boolean
}

/**
 * The changes that clients of this process wait for. Each row has an expiry, by the database's clock: no batch begins a
 * change after its client was told that the outcome is unknown, or after its replica has ended.
 */
export class AwaitedChanges {
  readonly #sql: Pick<Sql, 'get'>
  readonly #waits = new Map<number, Wait>()
  readonly #renewal: BackgroundTask
  /** By the database's clock. */
  #renewedAt = 0

  constructor(database: Pick<Sql, 'get'>) {
    this.#sql = database
    // The probe reports a database that is away.
    this.#renewal = new BackgroundTask({ run: () => this.#renew(), intervalMs: renewMs, onError: () => undefined })
  }

  /**
   * Renews a change that was accepted just now, until it is deleted. `onExpired` is called, if need be repeatedly, while
   * the database is away and the change cannot be begun any more.
   */
  add(id: number, onExpired: (cause: unknown) => void) {
    this.#waits.set(id, { expiresAt: performance.now() + awaitedMs, onExpired })
  }

  delete(id: number) {
    this.#waits.delete(id)
  }

  /** Stops renewing a change; resolves when no replica can begin it any more. */
  async expire(id: number): Promise<void> {
    const wait = this.#waits.get(id)
    if (!wait) return
    wait.isEnding = true
    await this.#renewal.running // It may renew this one once more.
    await sleep(Math.max(0, wait.expiresAt + clockMarginMs - performance.now()))
  }

  close(): Promise<void> {
    return this.#renewal.close()
  }

  async #renew(): Promise<void> {
    const waits = [...this.#waits].filter(([, { isEnding }]) => !isEnding)
    if (waits.length === 0) return
    try {
      // Counted from the last confirmed renewal: a renewal whose response is lost extends nothing.
      const until = this.#renewedAt + awaitedMs
      const ids = waits.map(([id]) => id)
      // Skips locked rows: a batch is beginning those changes.
      const row = await this.#sql.get<{ now: number }>(sql`
        with renewed as (update ${changes} set awaited_until = ${until}
          where id in (select id from ${changes} where id in (${list(ids)}) and status in ('queued', 'sending')
            and awaited_until < ${until} for update skip locked))
        select ${leaseNow} as now`)
      this.#renewedAt = row?.now ?? 0
      const expiresAt = performance.now() + awaitedMs
      for (const [, wait] of waits) wait.expiresAt = expiresAt
    } catch (error) {
      for (const [id, wait] of waits)
        if (this.#waits.get(id) === wait && wait.expiresAt <= performance.now()) wait.onExpired(error)
    }
  }
}
