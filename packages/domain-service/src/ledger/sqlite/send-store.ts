import type { Database } from 'better-sqlite3'
import { subtract, toRecord, type Zone } from '../../dns/record.ts'
import { summarize } from '../change-summary.ts'
import type {
  ChangeOutcome,
  Intent,
  LateSend,
  OpenSend,
  RecentSend,
  SendIntent,
  SendOutcome,
} from '../ledger.ts'
import { compress } from '../snapshot-encoding.ts'
import { type ChangeRow, listedColumns, requestColumns, toStoredChange } from '../stored-change.ts'
import { lateMs, recentMs, type SendRow } from '../stored-send.ts'
import type { ZoneSnapshots } from './zone-snapshots.ts'

/** The sends and the changes that they carry. The caller provides the transactions. */
export class SendStore {
  readonly #now: () => number
  readonly #zones: ZoneSnapshots
  readonly #statements: ReturnType<typeof prepare>

  constructor(database: Database, zones: ZoneSnapshots, now: () => number) {
    this.#now = now
    this.#zones = zones
    this.#statements = prepare(database)
  }

  start(send: SendIntent): { id: number; changeIds: number[] } {
    const now = this.#now()
    const digests = { base: this.#zones.put(send.base), zone: this.#zones.put(send.zone) }
    const { lastInsertRowid } = this.#statements.insertSend.run({
      ...digests,
      domain: send.domain,
      now,
    })
    const id = Number(lastInsertRowid)
    for (const repaired of send.repairs) this.#statements.repair.run(id, repaired)
    return { id, changeIds: send.intents.map((intent) => this.#startChange(intent, id, now)) }
  }

  end(id: number, outcome: SendOutcome) {
    const now = this.#now()
    const found = outcome.found ? this.#zones.put(outcome.found) : null
    const { state, unanswered } = outcome
    this.#statements.endSend.run({ id, state, found, now, unanswered })
    if (outcome.releaseRepairs) this.#statements.releaseRepairs.run(id)
    for (const change of outcome.changes) this.endChange(change, now)
  }

  open(domain: string): OpenSend[] {
    return this.#statements.open.all(domain).map((row) => ({
      id: row.id,
      domain: row.domain,
      // The query selects these states only.
      state: row.state as OpenSend['state'],
      startedAt: new Date(row.started_at),
      base: this.#zones.get(row.base),
      zone: this.#zones.get(row.zone),
      nextBase: row.next_base === null ? undefined : this.#zones.get(row.next_base),
      changes: this.#statements.changesOf.all(row.id).map(toStoredChange),
    }))
  }

  unsettledDomains(): string[] {
    return this.#statements.unsettled.all({ since: this.#now() - lateMs })
  }

  late(domain: string): LateSend[] {
    const given = this.#statements.givenUp.all({ domain, since: this.#now() - lateMs })
    if (given.length === 0) return []
    const last = this.#statements.last.get(domain)
    return given.flatMap((send) => {
      const isOutdated = last !== undefined && last.id > send.id
      if (!isOutdated && send.state !== 'refused') return []
      const confirmed = isOutdated ? (last.found ?? last.zone) : send.base
      return [
        { id: send.id, zone: this.#zones.get(send.zone), confirmed: this.#zones.get(confirmed) },
      ]
    })
  }

  recent(domain: string): RecentSend[] {
    const rows = this.#statements.recent.all({ domain, since: this.#now() - recentMs })
    return rows.map(({ base, zone, state }) => ({
      base: this.#zones.get(base),
      zone: this.#zones.get(zone),
      isDone: state !== 'open' && state !== 'unknown',
    }))
  }

  #startChange(intent: Intent, sendId: number, now: number): number {
    const effect = this.#effectColumns(intent, now, sendId)
    if (intent.id !== undefined) {
      this.#statements.updateChange.run({ ...effect, id: intent.id })
      return intent.id
    }
    const columns = { ...requestColumns(intent.request), ...effect }
    return Number(this.#statements.insertChange.run(columns).lastInsertRowid)
  }

  #effectColumns({ before, after, warnings }: Intent, now: number, sendId: number) {
    const added = subtract(after.rows, before.rows, before.domain)
    const removed = subtract(before.rows, after.rows, before.domain)
    const records = (rows: Zone['rows']) => rows.map((row) => toRecord(row, before.domain))
    const kept = after.rows.length - added.length
    return {
      now,
      send_id: sendId,
      before: this.#zones.put(before),
      after: this.#zones.put(after),
      email_type_before: before.emailType ?? null,
      email_type_after: after.emailType ?? null,
      warnings: JSON.stringify(warnings),
      summary: JSON.stringify(summarize(records(added), records(removed), kept)),
    }
  }

  endChange(change: ChangeOutcome, now = this.#now()) {
    const { zones } = change
    this.#statements.endChange.run({
      id: change.id,
      status: change.status,
      verified: change.verified ? 1 : 0,
      warnings: JSON.stringify(change.warnings),
      problem: change.problem ? JSON.stringify(change.problem) : null,
      releaseKey: change.releaseKey ? 1 : 0,
      now,
    })
    if (zones) this.#replaceZones(change.id, zones)
  }

  // The zones become those that were read; what the change itself did is stored beside them.
  #replaceZones(id: number, { before, after }: { before: Zone; after: Zone }) {
    const intended = this.#statements.zonesOfChange.get(id)
    if (!intended) return
    const [from, to] = [this.#zones.get(intended.before), this.#zones.get(intended.after)]
    const delta = {
      added: subtract(to.rows, from.rows, before.domain),
      removed: subtract(from.rows, to.rows, before.domain),
    }
    this.#statements.setZones.run({
      id,
      before: this.#zones.put(before),
      after: this.#zones.put(after),
      email_type_before: before.emailType ?? null,
      email_type_after: after.emailType ?? null,
      delta: compress(JSON.stringify(delta)),
    })
  }
}

const prepare = (database: Database) => ({
  insertSend: database.prepare(
    `insert into sends (domain, state, base, zone, started_at) values (:domain, 'open', :base, :zone, :now)`,
  ),
  endSend: database.prepare(
    `update sends set state = :state, found = coalesce(:found, found), ended_at = :now,
       unanswered = unanswered + :unanswered,
       given_up_at = coalesce(given_up_at, iif(:unanswered > 0, :now, null)) where id = :id`,
  ),
  repair: database.prepare(
    'update sends set unanswered = unanswered - 1, repaired_by = ? where id = ?',
  ),
  releaseRepairs: database.prepare(
    'update sends set unanswered = unanswered + 1, repaired_by = null where repaired_by = ?',
  ),
  insertChange: database.prepare(
    `insert into changes (domain, status, by, token, request_id, reason, is_async, verified, created_at, sent_at,
       send_id, before, after, email_type_before, email_type_after, idempotency_key, fingerprint, warnings, summary, request)
     values (:domain, 'sending', :by, :token, :request_id, :reason, 0, 0, :now, :now, :send_id, :before, :after,
       :email_type_before, :email_type_after, :idempotency_key, :fingerprint, :warnings, :summary, :request)`,
  ),
  updateChange: database.prepare(
    `update changes set status = 'sending', sent_at = coalesce(sent_at, :now), send_id = :send_id, before = :before,
       after = :after, email_type_before = :email_type_before, email_type_after = :email_type_after,
       warnings = :warnings, summary = :summary where id = :id`,
  ),
  endChange: database.prepare(
    `update changes set status = :status, verified = :verified, warnings = :warnings, problem = :problem,
       ended_at = :now, request = case when :status = 'confirmed' then null else request end,
       idempotency_key = case when :releaseKey then null else idempotency_key end where id = :id`,
  ),
  setZones: database.prepare(
    `update changes set before = :before, after = :after, email_type_before = :email_type_before,
       email_type_after = :email_type_after, delta = :delta where id = :id`,
  ),
  zonesOfChange: database.prepare<[number], { before: string; after: string }>(
    'select before, after from changes where id = ?',
  ),
  changesOf: database.prepare<[number], ChangeRow>(
    `select ${listedColumns} from changes where send_id = ? order by id`,
  ),
  open: database.prepare<[string], SendRow & { next_base: string | null }>(
    `select *, (select next.base from sends next where next.domain = sends.domain and next.id > sends.id
       and next.state = 'settled' order by next.id limit 1) as next_base
     from sends where domain = ? and state in ('open', 'unknown', 'unverified') order by id`,
  ),
  unsettled: database
    .prepare<[{ since: number }], string>(
      `select domain from sends where state in ('open', 'unknown', 'unverified')
       union select domain from sends where given_up_at > :since and unanswered > 0`,
    )
    .pluck(),
  givenUp: database.prepare<[{ domain: string; since: number }], SendRow>(
    `select * from sends where domain = :domain and given_up_at > :since and unanswered > 0
       and state not in ('open', 'unsent') order by id desc limit 20`,
  ),
  last: database.prepare<[string], SendRow>(
    `select * from sends where domain = ? and state in ('settled', 'unverified') order by id desc limit 1`,
  ),
  // An unknown send was last seen not done, which may have been an outdated answer.
  recent: database.prepare<
    [{ domain: string; since: number }],
    { base: string; zone: string; state: string }
  >(
    `select state, base, iif(state = 'unknown', zone, coalesce(found, zone)) as zone from sends
     where domain = :domain and coalesce(ended_at, started_at) > :since and state not in ('refused', 'unsent')
       and (state <> 'closed' or found is not null)
     order by id desc limit 5`,
  ),
})
