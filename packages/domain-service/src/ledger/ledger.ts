import {
  DatabaseFullError,
  forUpdate,
  list,
  name,
  now,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { changeClosed, changeNotQueued, insufficientStorage, ledgerUnavailable } from '../errors.ts'
import {
  type ChangeEffect,
  type ChangeOutcome,
  type ChangeRequest,
  isDatabaseAway,
  type SendIntent,
  type SendOutcome,
} from './change.ts'
import { ChangeHistory, isOpen, type OpenSend } from './change-history.ts'
import { cancelAll, endChanges, findByKey, insertChange, maxPauseMs, notify, storeEffects } from './changes.ts'
import { expireProposals } from './history-pruning.ts'
import { findKnown, KnownZones, recordOwnSend, type SentZone } from './known-zones.ts'
import { abandonedMs } from './replicas/awaited-changes.ts'
import { type Leases, leaseNow } from './replicas/leases.ts'
import { isPending, isVisible, readChange, type StoredChange } from './stored-change.ts'
import { putZones, zoneDigest } from './zone-snapshots.ts'

export * from './change.ts'
export type { DomainSends, OpenSend } from './change-history.ts'
export { effectOf } from './changes.ts'
export type { StoredChange } from './stored-change.ts'

const changes = name('changes')
const sends = name('sends')
const versions = name('zone_versions')

export interface LedgerOptions {
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
  readonly knownZones: KnownZones

  constructor({ sql: database, leases }: LedgerOptions) {
    super(database, leases ? sql`(is_async = 1 or awaited_until > ${leaseNow})` : sql`1 = 1`)
    this.#leases = leases
    this.#unsynced = database.unsynced ?? database
    this.#flush = async () => database.flush?.()
    this.knownZones = new KnownZones(database, database.unsynced)
  }

  /** Queues an asynchronous change, or with its `effect` proposes it; see `insertChange`. */
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

  /** The change that the same request has made before. @throws 422 `idempotency_key_reused` */
  async findByKey(request: ChangeRequest): Promise<StoredChange | undefined> {
    const known = await findByKey(this.sql, request)
    return known && readChange(this.sql, known.id)
  }

  /** As `accept`, for a waiting client: not among `queued`, and cancelled when its process ends before it is sent. */
  acceptAwaited(request: ChangeRequest) {
    return this.#unsynced.transaction((transaction) => insertChange(transaction, request, { isAsync: false }))
  }

  /**
   * Cancels an asynchronous or a proposed change, and releases its idempotency key: a repeated request is carried out.
   * @throws 409 `change_not_queued` where it is not queued any more.
   */
  cancel(id: number): Promise<StoredChange> {
    return this.sql.transaction(async (transaction) => {
      const cancelled = await cancelAll(transaction, sql`id = ${id} and is_async = 1`)
      const change = await readChange(transaction, id)
      if (cancelled === 0) throw changeNotQueued(id, change.status)
      return change
    })
  }

  /** A batch may take this change now, if it is still queued. */
  async endPause(id: number): Promise<void> {
    await this.#unsynced.run(sql`
      update ${changes} set not_before = 0 where id = ${id} and status = 'queued' and not_before > ${now}`)
  }

  /**
   * Releases or cancels held changes, and counts them. Held are those that were queued in a restored backup: they may have
   * been carried out after it was made, so none is before this.
   */
  async endHold({ cancel, domains }: { cancel: boolean; domains?: string[] | undefined }) {
    const which = sql`is_held = 1 ${domains ? sql`and ${isVisible(domains)}` : sql``}`
    return this.sql.transaction((transaction) =>
      cancel
        ? cancelAll(transaction, sql`${which} and is_async = 1`)
        : transaction.run(sql`update ${changes} set is_held = 0 where ${which} and status = 'queued'`),
    )
  }

  /**
   * Records the intent of one setHosts and of its changes, unless some of these are not queued any more, or their client
   * does not wait any more: then nothing is recorded, `id` is 0, and the others are locked. None is `gone` if its client has
   * just come back. Nothing may be sent where this fails or its outcome is unknown.
   * @throws 503 `unavailable`, or 507 `insufficient_storage` on a full disk.
   */
  async startSend(send: SendIntent) {
    const { domain } = send.base
    try {
      return await this.sql.transaction(async (transaction) => {
        await this.#leases?.lock(transaction, domain)
        const started = await this.#insertSend(transaction, send)
        if (this.#leases && started.id > 0) await increaseVersion(transaction, domain)
        return { ...started, domain }
      })
    } catch (error) {
      if (error instanceof DatabaseFullError) throw insufficientStorage(error)
      throw isDatabaseAway(error) ? ledgerUnavailable(error) : error
    }
  }

  async #insertSend(transaction: SqlTransaction, { base, zone, intents, repairs }: SendIntent) {
    // The service's own changes are not in the queue.
    const queued = intents.flatMap(({ write }) => (write.request.reason || !write.id ? [] : [write.id]))
    const isQueued = sql`id in (${list(queued)}) and status = 'queued' and is_held = 0 and ${this.isAwaited} ${forUpdate}`
    const row = await transaction.get<{ id: number }>(sql`
      insert into ${sends} (domain, state, base, zone, started_at)
      select ${base.domain}, 'open', ${zoneDigest(base)}, ${zoneDigest(zone)}, ${now}
      where (select count(*) from (select id from ${changes} where ${isQueued}) as queued) = ${queued.length} returning id`)
    if (!row) {
      const left = await transaction.all<{ id: number }>(sql`select id from ${changes} where ${isQueued}`)
      const gone = queued.filter((id) => !left.some((each) => each.id === id))
      return { id: 0, changeIds: [], gone: new Set(gone) }
    }
    const { id } = row
    if (repairs.length > 0)
      await transaction.run(sql`update ${sends} set unanswered = unanswered - 1, repaired_by = ${id}
        where id in (${list(repairs)})`)
    const effects: (ChangeEffect & { id: number })[] = []
    for (const { write, ...effect } of intents) {
      const known = write.id || (await insertChange(transaction, write.request, write)).id
      effects.push({ ...effect, id: known })
    }
    await storeEffects(transaction, effects, {
      zones: [base, zone],
      set: sql`status = 'sending', sent_at = coalesce(sent_at, ${now}), send_id = ${id},`,
    })
    return { id, changeIds: effects.map((effect) => effect.id), gone: new Set<number>() }
  }

  /** Records the outcome of a send and of changes that end with it. @returns the version of the domain's zone. */
  endSend({ id, domain }: Pick<OpenSend, 'id' | 'domain'>, outcome: SendOutcome): Promise<number> {
    return this.sql.transaction(async (transaction) => {
      await this.#leases?.lock(transaction, domain)
      const version = this.#leases ? await increaseVersion(transaction, domain) : 0
      // Locks the known zone first, as comparisons do: otherwise the two could deadlock.
      const known = await findKnown(transaction, domain)
      const send = await updateSend(transaction, id, outcome)
      await endChanges(transaction, outcome.changes, true)
      await recordOwnSend(transaction, { send, known }, outcome)
      await notify(transaction, domain)
      return version
    })
  }

  /** Ends changes of a domain that no send carries, or queues them again. `isForgettable`: a power cut may undo it. */
  async endChanges(domain: string, outcomes: ChangeOutcome[], isForgettable = false): Promise<void> {
    const database = isForgettable ? this.#unsynced : this.sql
    await database.transaction(async (transaction) => {
      const isHeld = !this.#leases || this.#leases.current(domain) !== undefined
      if (isHeld) await this.#leases?.lock(transaction, domain)
      await endChanges(transaction, outcomes, isHeld)
      await notify(transaction, domain)
    })
  }

  /** Where several processes write, each send raises it before and after: a zone read at another version is outdated. */
  async zoneVersion(domain: string): Promise<number> {
    const row = await this.sql.get<{ version: number }>(sql`select version from ${versions} where domain = ${domain}`)
    return row?.version ?? 0
  }

  /** Cancels queued changes that no client waits for; what was stored while the clock was ahead holds nothing up. */
  async recover(): Promise<void> {
    // Without leases an earlier process has left them all. With leases another replica may only be late with its renewal.
    const isAbandoned = this.#leases ? sql`awaited_until <= ${leaseNow} - ${abandonedMs}` : sql`1 = 1`
    await cancelAll(this.sql, sql`${isPending} and is_async = 0 and ${isAbandoned}`)
    await this.sql.run(sql`update ${changes} set not_before = 0
      where ${isPending} and not_before > ${now} + ${maxPauseMs}`)
    // By domain and end, since the index has these.
    const isAhead = sql`domain in (select domain from ${name('known_zones')}) and ended_at > ${now}`
    for (const at of [sql`started_at`, sql`given_up_at`, sql`ended_at`])
      await this.sql.run(sql`update ${sends} set ${at} = ${now} where ${at} > ${now} and ${isAhead}`)
    await this.sql.run(sql`update ${sends} set started_at = ${now} where ${isOpen} and started_at > ${now}`)
    await this.sql.run(sql`
      update ${name('known_zones')} set read_at = ${now}, pending = '{}', touched = '{}' where read_at > ${now}`)
  }

  /** The request of a proposed change. @throws 409 `change_closed` */
  async findProposal(id: number): Promise<ChangeRequest> {
    const row = await this.sql.get<{ request: string }>(sql`
      select request from ${changes} where id = ${id} and status = 'proposed'`)
    if (!row) throw changeClosed(id, (await readChange(this.sql, id)).status)
    return JSON.parse(row.request) as ChangeRequest // `insertChange` wrote this text.
  }

  /** Replaces the effect of a proposed change, and with an `approval` queues it. @throws 409 `change_closed` */
  updateProposal(id: number, effect: ChangeEffect, approval?: { by: string; request: ChangeRequest }) {
    const decision = approval
      ? sql`status = 'queued', approved_by = ${approval.by}, request = ${JSON.stringify(approval.request)}`
      : sql`status = status`
    return this.#decide(id, decision, effect)
  }

  /** Rejects a proposed change. @throws 409 `change_closed` */
  reject(id: number, reason: string | undefined) {
    return this.#decide(id, sql`status = 'rejected', reason = ${reason}, ended_at = ${now}, request = null`)
  }

  // Of several decisions about a proposal one wins.
  async #decide(id: number, decision: Statement, effect?: ChangeEffect): Promise<StoredChange> {
    await expireProposals(this.sql)
    return this.sql.transaction(async (transaction) => {
      const updated = await transaction.run(sql`
        update ${changes} set ${decision} where id = ${id} and status = 'proposed'`)
      if (updated > 0 && effect) await storeEffects(transaction, [{ ...effect, id }])
      const change = await readChange(transaction, id)
      if (updated === 0) throw changeClosed(id, change.status)
      await notify(transaction, change.domain)
      return change
    })
  }
}

async function updateSend(transaction: SqlTransaction, id: number, outcome: SendOutcome): Promise<SentZone> {
  const { found, state, unanswered } = outcome
  const send = await transaction.get<SentZone>(sql`
    update ${sends} set state = ${state}, found = coalesce(${found && zoneDigest(found)}, found),
      ended_at = ${now}, unanswered = unanswered + ${unanswered},
      given_up_at = coalesce(given_up_at, case when ${unanswered} > 0 then ${now} end) where id = ${id}
    returning id, base, zone, started_at,
      (select min(late.started_at) from ${sends} as late where late.repaired_by = sends.id) as late_since`)
  if (!send) throw new Error(`there is no send ${id}`)
  // The intent has stored the zone that was sent.
  if (found && zoneDigest(found) !== send.zone) await putZones(transaction, [found])
  // A late write whose repair was not seen to work is repaired again: only the outdated zone itself triggers that.
  if (!found || state === 'unknown')
    await transaction.run(sql`update ${sends} set unanswered = unanswered + 1, repaired_by = null
      where repaired_by = ${id}`)
  if (state === 'refused' || state === 'unsent')
    await transaction.run(sql`update ${changes} set status = 'queued', sent_at = null
      where send_id = ${id} and status = 'sending'`)
  return send
}

// The time, since a standby that is promoted without the last sends would give their versions again.
async function increaseVersion(transaction: SqlTransaction, domain: string): Promise<number> {
  const row = await transaction.get<{ version: number }>(sql`
    insert into ${versions} as known (domain, version) values (${domain}, ${now})
    on conflict (domain) do update set version = greatest(known.version + 1, excluded.version) returning version`)
  return row?.version ?? 0
}
