import {
  DatabaseFullError,
  DatabaseUnavailableError,
  list,
  name,
  now,
  OutcomeUnknownError,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { insufficientStorage, leaseLost, ledgerUnavailable } from '../errors.ts'
import type {
  ChangeEffect,
  ChangeOutcome,
  ChangeRequest,
  SendIntent,
  SendOutcome,
} from './change.ts'
import { ChangeHistory } from './change-history.ts'
import { endChanges, insertChange } from './changes.ts'
import { findKnown, KnownZones, recordOwnSend } from './known-zones.ts'
import { Proposals } from './proposals.ts'
import { abandonedMs } from './replicas/awaited-changes.ts'
import { type Leases, leaseNow } from './replicas/leases.ts'
import * as sends from './sends.ts'
import {
  isPending,
  isUnsent,
  isVisible,
  notify,
  readChange,
  type StoredChange,
} from './stored-change.ts'

export type * from './change.ts'
export {
  changeStatuses,
  effectOf,
  fromStoredProblem,
  isDatabaseAway,
  lateMs,
  requestOf,
  toStoredProblem,
} from './change.ts'
export { maxReady, type OpenSend } from './change-history.ts'
export type { StoredChange } from './stored-change.ts'

const changes = name('changes')
const versions = name('zone_versions')

interface LedgerOptions {
  sql: Sql & { readonly isAvailable: boolean; readonly unsynced?: Sql; flush?(): Promise<void> }
  /** Where several processes share the database. */
  leases?: Leases | undefined
}

/**
 * Every change of a zone, with its state: the history, the queue of changes, the memory of idempotency keys and of given-up
 * sends. A resolved promise means durable, except for steps that a power cut may undo (`#unsynced`). Only the replica
 * that holds a domain's lease can record the steps of the domain's batch.
 */
export class Ledger extends ChangeHistory {
  readonly #leases: Leases | undefined
  /** Commits without fsync: a power cut may undo these steps, since nothing was sent yet. */
  readonly #unsynced: Sql
  /** Makes earlier commits survive a power cut. Concurrent callers share one fsync, off the event loop. */
  readonly #flush: () => Promise<void>
  /** The changes that wait for an approval. */
  readonly proposals: Proposals
  /** The zones that every read is compared with. */
  readonly knownZones: KnownZones
  /** A change whose client does not wait any more; a replica that is late with its renewal does not count as gone. */
  readonly #isAbandoned: Statement

  constructor({ sql: database, leases }: LedgerOptions) {
    super(database, leases ? sql`(is_async = 1 or awaited_until > ${leaseNow})` : sql`1 = 1`)
    this.#leases = leases
    this.#unsynced = database.unsynced ?? database
    this.#flush = async () => database.flush?.()
    this.proposals = new Proposals(database)
    this.knownZones = new KnownZones(database, database.unsynced)
    this.#isAbandoned = leases
      ? sql`(is_async = 0 and awaited_until <= ${leaseNow} - ${abandonedMs})`
      : sql`is_async = 0` // Asked only of changes that an earlier process has left.
  }

  /**
   * Queues an asynchronous change, or finds the one that the same caller queued with the same idempotency key. With its
   * `effect` it is a proposal.
   * @throws 422 `idempotency_key_reused` for another request under the same key; 429 `too_many_changes` beyond 1,000 queued
   * asynchronous changes of the caller, or 10,000 or 256 MiB of all.
   */
  async accept(request: ChangeRequest, effect?: ChangeEffect) {
    // Durable at once: no event may report a proposal that a power cut can undo.
    const database = effect ? this.sql : this.#unsynced
    const accepted = await database.transaction(async (transaction) => {
      const inserted = await insertChange(transaction, request, { isAsync: true, effect })
      return { ...inserted, change: await readChange(transaction, inserted.id) }
    })
    if (!effect) await this.#flush()
    return accepted
  }

  /** As `accept`, for a waiting client: not among `queued`, and cancelled when its process ends before it is sent. */
  async acceptAwaited(request: ChangeRequest): Promise<number> {
    const accepted = await this.#unsynced.transaction((transaction) =>
      insertChange(transaction, request, { isAsync: false }),
    )
    return accepted.id
  }

  /** Claims queued changes of a domain for a batch: `sending`, though nothing is sent yet. Returns the claimed ids. */
  async claim(domain: string, ids: number[]): Promise<number[]> {
    if (ids.length === 0) return []
    return beforeSending(() =>
      this.#unsynced.transaction(async (transaction) => {
        const fence = await this.#lock(transaction, domain)
        const rows = await transaction.all<{ id: number }>(sql`
          update ${changes} set status = 'sending', claim_fence = ${fence}
          where id in (${list(ids)}) and domain = ${domain} and status = 'queued' and is_held = 0 and ${this.isAwaited} returning id`)
        return rows.map(({ id }) => id)
      }),
    )
  }

  /**
   * Cancels an asynchronous or a proposed change, and releases its idempotency key: a repeated request is carried out.
   * @returns undefined where it is not queued any more.
   */
  cancel(id: number): Promise<StoredChange | undefined> {
    return this.sql.transaction(async (transaction) => {
      const cancelled = await cancelAll(transaction, sql`id = ${id}`)
      return cancelled > 0 ? readChange(transaction, id) : undefined
    })
  }

  /**
   * Releases or cancels held changes, of `domains` if given. Held are the changes that were queued in a restored backup:
   * they may have been carried out after the backup was made, so none is carried out before this.
   * @returns how many.
   */
  async endHold({ cancel, domains }: { cancel: boolean; domains?: string[] | undefined }) {
    const which = sql`is_held = 1 ${domains ? sql`and ${isVisible(domains)}` : sql``}`
    return this.sql.transaction((transaction) =>
      cancel
        ? cancelAll(transaction, which)
        : transaction.run(
            sql`update ${changes} set is_held = 0 where ${which} and status = 'queued'`,
          ),
    )
  }

  /** Records the intent of one setHosts and of its changes, before anything is sent. */
  startSend(send: SendIntent): Promise<{ id: number; changeIds: number[] }> {
    return beforeSending(() =>
      this.sql.transaction(async (transaction) => {
        await this.#lock(transaction, send.base.domain)
        await this.#increaseVersion(transaction, send.base.domain)
        return sends.startSend(transaction, send)
      }),
    )
  }

  /** Records the outcome of a send and of changes that end with it. @returns the version of the domain's zone. */
  endSend(id: number, outcome: SendOutcome): Promise<number> {
    return this.sql.transaction(async (transaction) => {
      const send = await sends.readSend(transaction, id)
      const { domain } = send
      await this.#lock(transaction, domain)
      const version = await this.#increaseVersion(transaction, domain)
      // Locks the known zone first, as comparisons do: otherwise the two could deadlock.
      const known = await findKnown(transaction, domain)
      await sends.endSend(transaction, id, outcome)
      await recordOwnSend(transaction, { send, known }, outcome)
      await notify(transaction, domain)
      return version
    })
  }

  /**
   * Ends changes of a domain that no send carries, or queues them again. `isForgettable`: a power cut may undo it. Where
   * another replica holds the domain's lease, only changes that it has not claimed are ended.
   */
  async endChanges(
    domain: string,
    outcomes: ChangeOutcome[],
    isForgettable = false,
  ): Promise<void> {
    const database = isForgettable ? this.#unsynced : this.sql
    await database.transaction(async (transaction) => {
      const isHeld = !this.#leases || this.#leases.current(domain) !== undefined
      if (isHeld) await this.#lock(transaction, domain)
      await endChanges(transaction, outcomes, isHeld)
      await notify(transaction, domain)
    })
  }

  /** Each send raises the version before and after: a zone that was read at another version is outdated. */
  async zoneVersion(domain: string): Promise<number> {
    if (!this.#leases) return 0
    const row = await this.sql.get<{ version: number }>(
      sql`select version from ${versions} where domain = ${domain}`,
    )
    return row?.version ?? 0
  }

  async #increaseVersion(transaction: SqlTransaction, domain: string): Promise<number> {
    if (!this.#leases) return 0
    const row = await transaction.get<{ version: number }>(sql`
      insert into ${versions} as known (domain, version) values (${domain}, 1)
      on conflict (domain) do update set version = known.version + 1 returning version`)
    return row?.version ?? 0
  }

  /**
   * Queues asynchronous changes again that ended processes claimed and did not send, and cancels changes whose client does
   * not wait any more. Changes of running processes stay as they are, so a replica can call it at any time.
   */
  async recover(): Promise<void> {
    const leases = name('leases')
    await this.sql.transaction(async (transaction) => {
      if (this.#leases) await this.#recoverClaimed(transaction)
      // A process without leases, or a restored backup, has left these.
      await transaction.run(sql`update ${changes} set ${putBack(this.#isAbandoned)} where claim_fence is null and ${isUnsent}
        and not exists (select 1 from ${leases} where name = changes.domain)`)
      await transaction.run(sql`update ${changes}
        set status = 'cancelled', ended_at = ${now}, idempotency_key = null, request = null
        where ${isPending} and status = 'queued' and ${this.#isAbandoned}`)
    })
  }

  // The lock keeps a holder from renewing its lease meanwhile.
  async #recoverClaimed(transaction: SqlTransaction) {
    await transaction.run(sql`with free as (select name, fence from ${name('leases')}
        where until <= ${leaseNow} and exists (select 1 from ${changes} where domain = name
          and ${isPending} and status = 'sending')
        for update skip locked)
      update ${changes} set ${putBack(this.#isAbandoned)} from free
      where domain = free.name and coalesce(claim_fence, 0) <= free.fence and ${isUnsent}`)
  }

  /**
   * Puts back what earlier holders of a domain's lease, or earlier batches of the only process, claimed and did not send.
   * The caller holds the lease, and runs no batch.
   */
  async takeOver(domain: string): Promise<void> {
    const lease = this.#leases?.current(domain)
    if (this.#leases && !lease) throw leaseLost(domain)
    const isEarlier = lease ? sql`coalesce(claim_fence, 0) < ${lease.fence}` : sql`1 = 1`
    const isLeft = sql`domain = ${domain} and ${isEarlier} and ${isUnsent}`
    // Mostly there is nothing to put back: that needs no commit.
    if (!(await this.sql.get(sql`select 1 from ${changes} where ${isLeft} limit 1`))) return
    await this.#unsynced.run(
      sql`update ${changes} set ${putBack(lease ? this.#isAbandoned : sql`1 = 0`)} where ${isLeft}`,
    )
  }

  /** Deletes changes that ended before this moment, and zones that nothing refers to. */
  async prune(before: Date): Promise<number> {
    return this.sql.transaction(async (transaction) => {
      const pruned = await transaction.run(
        sql`delete from ${changes} where ended_at < ${before.getTime()}`,
      )
      await sends.prune(transaction, before)
      return pruned
    })
  }

  /** @returns the fence of the domain's lease; null where this is the only process. */
  async #lock(transaction: SqlTransaction, domain: string): Promise<number | null> {
    if (!this.#leases) return null
    return (await this.#leases.lock(transaction, domain)).fence
  }
}

const putBack = (isAbandoned: Statement) =>
  sql`status = case when ${isAbandoned} then 'cancelled' else 'queued' end,
    ended_at = case when ${isAbandoned} then ${now} end,
    idempotency_key = case when ${isAbandoned} then null else idempotency_key end`

const cancelAll = (transaction: SqlTransaction, which: Statement) =>
  transaction.run(sql`update ${changes} set status = 'cancelled', ended_at = ${now}, request = null,
      idempotency_key = null
    where ${which} and status in ('queued', 'proposed') and is_async = 1`)

/**
 * Runs a transaction that must commit before anything is sent: where it fails or its outcome is unknown, nothing is sent.
 * @throws 503 `unavailable`, or 507 `insufficient_storage` on a full disk.
 */
async function beforeSending<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof DatabaseFullError) throw insufficientStorage(error)
    const isAway = error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError
    throw isAway ? ledgerUnavailable(error) : error
  }
}
