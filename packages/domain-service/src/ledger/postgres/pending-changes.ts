import type { Postgres } from '@domains-and-files/persistence'
import type { ChangeRequest, Snapshot } from '../ledger.ts'
import { isAwaited, recoverDomain } from './change-statements.ts'
import { insertChange } from './insert-change.ts'
import type { Lease } from './replicas/leases.ts'
import { getZones } from './zone-snapshots.ts'

export interface PendingChange {
  id: number
  isAsync: boolean
  request: ChangeRequest
}

/** The changes of all replicas that wait for a batch. */
export class PendingChanges {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /**
   * Queues a change whose client waits, or finds the one that used the same idempotency key.
   * @throws 422 `idempotency_key_reused` for another request under the same key.
   */
  accept(request: ChangeRequest): Promise<number> {
    return this.#postgres.transaction((transaction) =>
      insertChange(transaction, request, { isAsync: false }),
    )
  }

  /** What a batch of a domain can take now, oldest first: asynchronous changes, and those that somebody waits for. */
  async ready(domain: string): Promise<PendingChange[]> {
    const rows = await this.#postgres.query<{ id: number; is_async: number; request: string }>(
      `select id, is_async, request from domain_service.changes
       where status = 'queued' and domain = $1 and not_before <= domain_service.now_ms() and ${isAwaited}
       order by id limit 1000`,
      [domain],
    )
    return rows.map(({ id, is_async, request }) => ({
      id,
      isAsync: is_async === 1,
      // `requestColumns` wrote this text.
      request: JSON.parse(request) as ChangeRequest,
    }))
  }

  /** Those of these changes that have ended. */
  async ended(ids: number[]): Promise<number[]> {
    const rows = await this.#postgres.query<{ id: number }>(
      `select id from domain_service.changes where id = any($1) and status not in ('queued', 'sending')`,
      [ids],
    )
    return rows.map(({ id }) => id)
  }

  /** Puts back what earlier holders of a domain's lease took and did not send. */
  async takeOver({ name, fence }: Lease): Promise<void> {
    await this.#postgres.query(recoverDomain, [name, fence])
  }

  /** Whether an earlier holder of the lease has left a send without an outcome. */
  async hasOpenSend(domain: string): Promise<boolean> {
    const rows = await this.#postgres.query(
      `select from domain_service.sends where domain = $1 and state = 'open' limit 1`,
      [domain],
    )
    return rows.length > 0
  }

  /** The zone as it was found after the send of a change; undefined where there was none. */
  async foundAfter(id: number): Promise<Snapshot | undefined> {
    const [row] = await this.#postgres.query<{ found: string | null }>(
      `select found from domain_service.sends
       where id = (select send_id from domain_service.changes where id = $1)`,
      [id],
    )
    if (!row?.found) return undefined
    const zoneOf = await getZones(this.#postgres, [row.found])
    return zoneOf(row.found)
  }
}
