import type { Postgres, Transaction } from '@domains-and-files/persistence'
import { leaseLost } from '../../../errors.ts'
import { notify } from './notifications.ts'

/** The right to do something alone among all replicas, until it expires or is released. */
export interface Lease {
  name: string
  /** Grows with each holder: what an earlier holder still tries to record is refused. */
  fence: number
  /** By the monotonic clock of this process; earlier than the database's. */
  expiresAt: number
}

interface LeasesOptions {
  postgres: Postgres
  /** Id of this process; never used again by another one. */
  holder: string
  /** Milliseconds after which the lease of a process that does not renew it expires. */
  ttlMs: number
  onError: (error: unknown) => void
}

/** Leases are renewed so many times within their lifetime. */
const renewals = 6

/** The leases of this process, as rows that live by the database's clock. */
export class Leases {
  readonly #options: LeasesOptions
  readonly #held = new Map<string, Lease>()
  readonly #asked = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** Attempts that found the lease held by another replica. */
  refusals = 0

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#renew(), options.ttlMs / renewals).unref()
  }

  get holder(): string {
    return this.#options.holder
  }

  /** Leases held by this process. */
  get size(): number {
    return this.#held.size
  }

  /** Undefined while another process, or another task of this one, holds the lease. */
  async tryAcquire(name: string): Promise<Lease | undefined> {
    if (this.current(name) || this.#asked.has(name)) return undefined
    this.#asked.add(name)
    try {
      return await this.#acquire(name)
    } finally {
      this.#asked.delete(name)
    }
  }

  async release(lease: Lease): Promise<void> {
    if (this.#held.get(lease.name) !== lease) return
    this.#held.delete(lease.name)
    const { postgres, holder, onError } = this.#options
    // A lease that cannot be released expires.
    await postgres.query(release, [lease.name, holder, lease.fence]).catch(onError)
  }

  /** The lease of this name if this process holds it. */
  current(name: string): Lease | undefined {
    const lease = this.#held.get(name)
    return lease && lease.expiresAt > performance.now() ? lease : undefined
  }

  /**
   * Locks a lease that this process holds for the rest of a transaction, so that no other process can acquire it before.
   * @throws 503 `unavailable` where it does not hold it any more.
   */
  async lock(transaction: Transaction, name: string): Promise<Lease> {
    const lease = this.current(name)
    const found =
      lease && (await transaction.query(lock, [name, this.#options.holder, lease.fence])).length > 0
    if (!lease || !found) throw leaseLost(name)
    return lease
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const lease of [...this.#held.values()]) await this.release(lease)
  }

  async #acquire(name: string): Promise<Lease | undefined> {
    const { postgres, holder, ttlMs } = this.#options
    const askedAt = performance.now()
    const [row] = await postgres.query<{ fence: number }>(acquire, [name, holder, ttlMs])
    if (!row) {
      this.refusals++
      return undefined
    }
    const lease = { name, fence: row.fence, expiresAt: askedAt + ttlMs }
    this.#held.set(name, lease)
    return lease
  }

  async #renew() {
    const leases = [...this.#held.values()]
    if (leases.length === 0) return
    const { postgres, holder, ttlMs, onError } = this.#options
    const askedAt = performance.now()
    try {
      const names = leases.map(({ name }) => name)
      const renewed = await postgres.query<{ name: string }>(renew, [names, holder, ttlMs])
      const alive = new Set(renewed.map(({ name }) => name))
      for (const lease of leases) {
        if (alive.has(lease.name)) lease.expiresAt = askedAt + ttlMs
        else if (this.#held.get(lease.name) === lease) this.#held.delete(lease.name)
      }
    } catch (error) {
      onError(error)
    }
  }
}

// A lease of this process that it does not know of is one whose response was lost.
const acquire = `insert into domain_service.leases as held (name, holder, fence, until)
  values ($1, $2, 1, domain_service.now_ms() + $3)
  on conflict (name) do update set holder = excluded.holder, fence = held.fence + 1, until = excluded.until
    where held.until <= domain_service.now_ms() or held.holder = excluded.holder returning fence`

const release = `with released as (update domain_service.leases set until = 0
    where name = $1 and holder = $2 and fence = $3 returning name)
  select ${notify(1)} from released`

// One that has expired stays lost, although nobody has acquired it yet.
const renew = `update domain_service.leases set until = domain_service.now_ms() + $3
  where name = any($1) and holder = $2 and until > domain_service.now_ms() returning name`

const lock = `select from domain_service.leases
  where name = $1 and holder = $2 and fence = $3 and until > domain_service.now_ms() for update`
