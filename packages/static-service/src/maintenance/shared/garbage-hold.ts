import { randomUUID } from 'node:crypto'
import type { Postgres } from '@domains-and-files/persistence'

/**
 * Keeps all replicas from deleting objects while a backup runs. Taken before the backup's snapshot: what is garbage by
 * then is not in the snapshot, and nothing else is deleted. A hold whose process was killed expires.
 */
export class GarbageHold implements AsyncDisposable {
  readonly #postgres: Postgres
  readonly #id = randomUUID()
  readonly #timer: NodeJS.Timeout
  #renewing: Promise<void> = Promise.resolve()

  static async take(postgres: Postgres): Promise<GarbageHold> {
    const hold = new GarbageHold(postgres)
    await hold.#renew()
    return hold
  }

  private constructor(postgres: Postgres) {
    this.#postgres = postgres
    this.#timer = setInterval(() => {
      // The next renewal comes long before the hold expires.
      this.#renewing = this.#renew().catch(() => undefined)
    }, renewalMs)
    this.#timer.unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#renewing
    await this.#postgres.query('delete from static_service.backups where id = $1', [this.#id])
  }

  async #renew() {
    await this.#postgres.query(
      `insert into static_service.backups values ($1, clock_timestamp() + interval '10 minutes')
       on conflict (id) do update set expires_at = excluded.expires_at`,
      [this.#id],
    )
  }
}

const renewalMs = 60_000
