import { inflateRawSync } from 'node:zlib'
import type { Postgres, Transaction } from '@domains-and-files/persistence'
import { type Row, subtract } from '../../dns/record.ts'
import type {
  ChangeEffect,
  ChangeFilter,
  ChangeOutcome,
  ChangeRequest,
  ChangeZones,
  Ledger,
  SendIntent,
  SendOutcome,
  StoredProblem,
} from '../ledger.ts'
import { type ChangeRow, listedColumns, toStoredChange } from '../stored-change.ts'
import { conditionOf } from './change-filter.ts'
import * as sql from './change-statements.ts'
import { endUnsent } from './end-unsent.ts'
import { insertChange } from './insert-change.ts'
import type { Leases } from './replicas/leases.ts'
import { notify } from './replicas/notifications.ts'
import * as sends from './send-store.ts'
import { recorded } from './storage-errors.ts'
import { getZones, unusedMs } from './zone-snapshots.ts'
import { increaseVersion, type ZoneVersions } from './zone-versions.ts'

const keyMs = 86_400_000
/** How long an asynchronous change that has failed waits before a batch may take it again. */
const pauseMs = 4_000

interface LedgerOptions {
  postgres: Postgres
  leases: Leases
  versions: ZoneVersions
}

/**
 * The ledger of all replicas, in PostgreSQL. What belongs to a domain's batch can be recorded only by the replica that
 * holds the domain's lease.
 */
export class PostgresLedger implements Ledger {
  readonly #postgres: Postgres
  readonly #leases: Leases
  readonly #versions: ZoneVersions

  constructor({ postgres, leases, versions }: LedgerOptions) {
    this.#postgres = postgres
    this.#leases = leases
    this.#versions = versions
  }

  enqueue(request: ChangeRequest): Promise<number> {
    return this.#postgres.transaction((transaction) =>
      insertChange(transaction, request, { isAsync: true }),
    )
  }

  async queuedDomains() {
    const rows = await this.#postgres.query<{ domain: string }>(
      `select domain from domain_service.changes where status = 'queued' and is_async = 1
         and not_before <= domain_service.now_ms() group by domain order by min(id)`,
    )
    return rows.map(({ domain }) => domain)
  }

  async queued(domain: string) {
    const rows = await this.#postgres.query<{ id: number; request: string }>(
      `select id, request from domain_service.changes where status = 'queued' and is_async = 1 and domain = $1
         and not_before <= domain_service.now_ms() order by id limit 100`,
      [domain],
    )
    // `requestColumns` wrote this text.
    return rows.map(({ id, request }) => ({ id, request: JSON.parse(request) as ChangeRequest }))
  }

  async claim(ids: number[]): Promise<number[]> {
    if (ids.length === 0) return []
    return recorded(() =>
      this.#postgres.transaction(async (transaction) => {
        const domain = await domainOf(transaction, 'changes', ids[0])
        const { fence } = await this.#leases.lock(transaction, domain)
        const rows = await transaction.query<{ id: number }>(sql.claim, [ids, domain, fence])
        return rows.map(({ id }) => id)
      }),
    )
  }

  // A change with a client waiting for it cannot be withdrawn by another one.
  async cancel(id: number): Promise<boolean> {
    return this.#postgres.transaction(async (transaction) => {
      const cancelled = await transaction.query(
        `update domain_service.changes set status = 'cancelled', ended_at = domain_service.now_ms()
         where id = $1 and status = 'queued' and is_async = 1 returning id`,
        [id],
      )
      return cancelled.length > 0
    })
  }

  /** Does nothing where another replica carries out the writes of the domain, or this one is sending the change. */
  async requeue(id: number): Promise<void> {
    await this.#postgres.transaction(async (transaction) => {
      const domain = await domainOf(transaction, 'changes', id)
      if (!this.#leases.current(domain)) return
      await this.#leases.lock(transaction, domain)
      await transaction.query(sql.requeue, [id, pauseMs])
    })
  }

  endUnsent(
    change: { id: number | undefined; request: ChangeRequest },
    end: { effect: ChangeEffect } | { problem: StoredProblem },
  ): Promise<number> {
    return this.#postgres.transaction((transaction) =>
      endUnsent(transaction, this.#leases, change, end),
    )
  }

  async startSend(send: SendIntent) {
    const started = await recorded(() =>
      this.#postgres.transaction(async (transaction) => {
        await this.#leases.lock(transaction, send.domain)
        const version = await increaseVersion(transaction, send.domain)
        return { version, ...(await sends.startSend(transaction, send)) }
      }),
    )
    this.#versions.recordStart(send.domain, started.version)
    return started
  }

  async endSend(id: number, outcome: SendOutcome): Promise<void> {
    const ended = await this.#postgres.transaction(async (transaction) => {
      const domain = await domainOf(transaction, 'sends', id)
      await this.#leases.lock(transaction, domain)
      const version = await increaseVersion(transaction, domain)
      await sends.endSend(transaction, id, outcome)
      await transaction.query(`select ${notify(1)}`, [domain])
      return { domain, version }
    })
    this.#versions.recordEnd(ended.domain, ended.version)
  }

  async endChanges(outcomes: ChangeOutcome[]): Promise<void> {
    await this.#postgres.transaction(async (transaction) => {
      const [first] = outcomes
      if (!first) return
      const domain = await domainOf(transaction, 'changes', first.id)
      await this.#leases.lock(transaction, domain)
      await sends.endChanges(transaction, outcomes)
      await transaction.query(`select ${notify(1)}`, [domain])
    })
  }

  /** Only what replicas that have ended left behind, so it can be called at any time. */
  async recover(): Promise<void> {
    await this.#postgres.transaction(async (transaction) => {
      await transaction.query(sql.recoverClaimed)
      await transaction.query(sql.recoverRestored)
      await transaction.query(sql.cancelAbandoned)
    })
  }

  openSends(domain: string) {
    return sends.openSends(this.#postgres, domain)
  }

  unsettledDomains() {
    return sends.unsettledDomains(this.#postgres)
  }

  lateSends(domain: string) {
    return sends.lateSends(this.#postgres, domain)
  }

  recentSends(domain: string) {
    return sends.recentSends(this.#postgres, domain)
  }

  async find(id: number) {
    const [row] = await this.#postgres.query<ChangeRow>(
      `select ${listedColumns} from domain_service.changes where id = $1`,
      [id],
    )
    return row && toStoredChange(row)
  }

  async findByKey(by: string, key: string) {
    const [row] = await this.#postgres.query<{ id: number; fingerprint: string }>(
      `select id, fingerprint from domain_service.changes where by = $1 and idempotency_key = $2
         and created_at > domain_service.now_ms() - $3`,
      [by, key, keyMs],
    )
    return row
  }

  async zonesOf(id: number): Promise<ChangeZones | undefined> {
    const [row] = await this.#postgres.query<ZonesRow>(
      'select domain, before, after, delta from domain_service.changes where id = $1 and before is not null',
      [id],
    )
    if (!row) return undefined
    const zoneOf = await getZones(this.#postgres, [row.before, row.after])
    const [before, after] = [zoneOf(row.before), zoneOf(row.after)]
    if (row.delta) {
      // `replaceZones` wrote it.
      const own = JSON.parse(String(inflateRawSync(row.delta))) as { added: Row[]; removed: Row[] }
      return { before, after, ...own }
    }
    const added = subtract(after.rows, before.rows, row.domain)
    return { before, after, added, removed: subtract(before.rows, after.rows, row.domain) }
  }

  async list(filter: ChangeFilter, { page, page_size }: { page: number; page_size: number }) {
    const { sql: where, values } = conditionOf(filter)
    const [count] = await this.#postgres.query<{ total: number }>(
      `select count(*) as total from domain_service.changes ${where}`,
      values,
    )
    const rows = await this.#postgres.query<ChangeRow>(
      `select ${listedColumns} from domain_service.changes ${where} order by id desc
         limit $${values.length + 1} offset $${values.length + 2}`,
      [...values, page_size, (page - 1) * page_size],
    )
    return { changes: rows.map(toStoredChange), total: count?.total ?? 0 }
  }

  async prune(before: Date): Promise<number> {
    return this.#postgres.transaction(async (transaction) => {
      const pruned = await transaction.query(
        'delete from domain_service.changes where ended_at < $1 returning id',
        [before.getTime()],
      )
      await transaction.query(sql.pruneSends, [before.getTime(), keyMs])
      await transaction.query(sql.pruneZones, [unusedMs])
      return pruned.length
    })
  }

  isWritable(): boolean {
    return this.#postgres.isAvailable
  }
}

interface ZonesRow {
  domain: string
  before: string
  after: string
  delta: Buffer | null
}

async function domainOf(
  transaction: Transaction,
  table: 'changes' | 'sends',
  id: number | undefined,
): Promise<string> {
  const [row] = await transaction.query<{ domain: string }>(
    `select domain from domain_service.${table} where id = $1`,
    [id],
  )
  return row?.domain ?? ''
}
