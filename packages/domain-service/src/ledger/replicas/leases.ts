import {
  BackgroundTask,
  dialect,
  forUpdate,
  list,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import { leaseLost } from '../../errors.ts'

/** Mutual exclusion among all replicas, until it expires or is released. */
export interface Lease {
  name: string
  /** Fencing token, raised with each holder: late writes of an earlier holder are refused. */
  fence: number
  /** By the monotonic clock of this process; earlier than the database's. */
  expiresAt: number
}

interface LeasesOptions {
  sql: Sql
  /** Id of this process; never used again by another one. */
  holder: string
  /** Milliseconds after which the lease of a process that does not renew it expires. */
  ttlMs: number
  /** Receives the first of consecutive failures to renew, and each failure to release. */
  onError: (error: unknown) => void
}

const leases = name('leases')

/** A change of a domain was queued or has ended, or its lease was released; the payload is the domain. */
export const changesChannel = 'domain_service_changes'

/**
 * Milliseconds since 1970 by PostgreSQL's clock, for everything that processes renew by timers: leases, awaited changes,
 * held slots. A function of its own, so that tests can move `now` without expiring those.
 */
export const leaseNow = dialect({ postgres: sql`${name('lease_ms')}()`, sqlite: now })

/** Far less than the lifetime of any lease. */
const renewMs = 2_500

/** The leases that this process holds: rows that expire by the database's clock. */
export class Leases {
  readonly #options: LeasesOptions
  readonly #held = new Map<string, Lease>()
  readonly #renewal: BackgroundTask

  constructor(options: LeasesOptions) {
    this.#options = options
    const { onError } = options
    this.#renewal = new BackgroundTask({ run: () => this.#renew(), intervalMs: renewMs, onError })
  }

  get size(): number {
    return this.#held.size
  }

  /** Undefined while another process holds the lease, or this one. One task of a process asks for each lease. */
  async tryAcquire(name: string): Promise<Lease | undefined> {
    if (this.current(name)) return undefined
    const { sql: database, holder, ttlMs } = this.#options
    const askedAt = performance.now()
    // The process may hold the lease without knowing it, if a response was lost: then it acquires it again.
    const row = await database.get<{ fence: number }>(sql`
      insert into ${leases} as held (name, holder, fence, until)
      values (${name}, ${holder}, 1, ${leaseNow} + ${ttlMs})
      on conflict (name) do update set holder = excluded.holder, fence = held.fence + 1, until = excluded.until
        where held.until <= ${leaseNow} or held.holder = excluded.holder returning fence`)
    if (!row) return undefined
    const lease = { name, fence: row.fence, expiresAt: askedAt + ttlMs }
    this.#held.set(name, lease)
    return lease
  }

  async release(lease: Lease): Promise<void> {
    if (this.#held.get(lease.name) !== lease) return
    this.#held.delete(lease.name)
    const { sql: database, holder, onError } = this.#options
    const release = database.get(sql`
      with released as (update ${leases} set until = 0
        where name = ${lease.name} and holder = ${holder} and fence = ${lease.fence} returning name)
      select pg_notify(${changesChannel}, name) from released`)
    await release.catch(onError) // A lease that cannot be released expires.
  }

  /** The lease of this name if this process holds it. */
  current(name: string): Lease | undefined {
    const lease = this.#held.get(name)
    return lease && lease.expiresAt > performance.now() ? lease : undefined
  }

  /** @throws 503 `unavailable` unless this process holds the lease, for longer than `leftMs` from now. */
  require(name: string, leftMs = 0): Lease {
    const lease = this.#held.get(name)
    if (lease && lease.expiresAt - performance.now() > leftMs) return lease
    throw leaseLost(name)
  }

  /**
   * Locks a lease that this process holds for the rest of a transaction, so that no other process can acquire it before.
   * @throws 503 `unavailable` where it does not hold it any more.
   */
  async lock(transaction: SqlTransaction, name: string): Promise<Lease> {
    const lease = this.require(name)
    const found = await transaction.get(sql`select 1 from ${leases} where name = ${name}
      and holder = ${this.#options.holder} and fence = ${lease.fence} and until > ${leaseNow} ${forUpdate}`)
    if (!found) throw leaseLost(name)
    return lease
  }

  async close(): Promise<void> {
    await this.#renewal.close()
    for (const lease of [...this.#held.values()]) await this.release(lease)
  }

  async #renew() {
    const held = [...this.#held.values()]
    if (held.length === 0) return
    const { sql: database, holder, ttlMs } = this.#options
    const askedAt = performance.now()
    // An expired lease stays lost, even if no process has acquired it yet.
    const renewed = await database.all<{ name: string }>(sql`
      update ${leases} set until = ${leaseNow} + ${ttlMs}
      where name in (${list(held.map(({ name }) => name))}) and holder = ${holder} and until > ${leaseNow} returning name`)
    const alive = new Set(renewed.map(({ name }) => name))
    for (const lease of held) {
      if (alive.has(lease.name)) lease.expiresAt = askedAt + ttlMs
      else if (this.#held.get(lease.name) === lease) this.#held.delete(lease.name)
    }
  }
}
