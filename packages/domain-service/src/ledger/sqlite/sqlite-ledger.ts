import { inflateRawSync } from 'node:zlib'
import type { Database } from 'better-sqlite3'
import { type Row, subtract, toRecord } from '../../dns/record.ts'
import { summarize } from '../change-summary.ts'
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
import { type ChangeRow, listedColumns, requestColumns, toStoredChange } from '../stored-change.ts'
import { whereOf } from './change-query.ts'
import { SendStore } from './send-store.ts'
import { toStorageError } from './storage-errors.ts'
import { ZoneSnapshots } from './zone-snapshots.ts'

const probeEveryMs = 5_000
const keyMs = 86_400_000

/** The ledger in the service's own SQLite database. */
export class SqliteLedger implements Ledger {
  readonly #database: Database
  readonly #now: () => number
  readonly #zones: ZoneSnapshots
  readonly #sends: SendStore
  readonly #statements: ReturnType<typeof prepare>
  #probe: { at: number; isWritable: boolean } = { at: Number.NEGATIVE_INFINITY, isWritable: true }

  constructor(database: Database, now: () => number = Date.now) {
    this.#database = database
    this.#now = now
    this.#zones = new ZoneSnapshots(database)
    this.#sends = new SendStore(database, this.#zones, now)
    this.#statements = prepare(database)
  }

  async enqueue(request: ChangeRequest): Promise<number> {
    return this.#write(() => {
      const columns = { ...requestColumns(request), now: this.#now(), isAsync: 1 }
      return Number(this.#statements.enqueue.run(columns).lastInsertRowid)
    })
  }

  async queuedDomains() {
    return this.#statements.queuedDomains.all()
  }

  async queued(domain: string) {
    const rows = this.#statements.queued.all(domain)
    // `requestColumns` wrote this text.
    return rows.map(({ id, request }) => ({ id, request: JSON.parse(request) as ChangeRequest }))
  }

  async claim(ids: number[]): Promise<number[]> {
    if (ids.length === 0) return []
    return this.#write(() => ids.filter((id) => this.#statements.claim.run(id).changes > 0))
  }

  async cancel(id: number): Promise<boolean> {
    return this.#write(() => this.#statements.cancel.run({ id, now: this.#now() }).changes > 0)
  }

  async requeue(id: number): Promise<void> {
    this.#write(() => this.#statements.requeue.run(id))
  }

  async endUnsent(
    { id, request }: { id: number | undefined; request: ChangeRequest },
    end: { effect: ChangeEffect } | { problem: StoredProblem },
  ): Promise<number> {
    return this.#write(() => {
      const row =
        id ??
        Number(
          this.#statements.enqueue.run({ ...requestColumns(request), now: this.#now(), isAsync: 0 })
            .lastInsertRowid,
        )
      this.#statements.endUnsent.run({ id: row, now: this.#now(), ...this.#endColumns(end) })
      return row
    })
  }

  async startSend(send: SendIntent) {
    return this.#write(() => this.#sends.start(send))
  }

  async endSend(id: number, outcome: SendOutcome): Promise<void> {
    this.#write(() => this.#sends.end(id, outcome))
  }

  async endChanges(outcomes: ChangeOutcome[]): Promise<void> {
    this.#write(() => {
      for (const outcome of outcomes) this.#sends.endChange(outcome)
    })
  }

  async recover(): Promise<void> {
    this.#write(() => this.#statements.recover.run(this.#now()))
  }

  async openSends(domain: string) {
    return this.#sends.open(domain)
  }

  async unsettledDomains() {
    return this.#sends.unsettledDomains()
  }

  async lateSends(domain: string) {
    return this.#sends.late(domain)
  }

  async recentSends(domain: string) {
    return this.#sends.recent(domain)
  }

  async find(id: number) {
    const row = this.#statements.find.get(id)
    return row && toStoredChange(row)
  }

  async findByKey(by: string, key: string) {
    return this.#statements.findByKey.get({ by, key, since: this.#now() - keyMs })
  }

  async zonesOf(id: number): Promise<ChangeZones | undefined> {
    const row = this.#statements.zones.get(id)
    if (!row) return undefined
    const [before, after] = [this.#zones.get(row.before), this.#zones.get(row.after)]
    if (row.delta) {
      // `SendStore` wrote it.
      const own = JSON.parse(String(inflateRawSync(row.delta))) as { added: Row[]; removed: Row[] }
      return { before, after, ...own }
    }
    return {
      before,
      after,
      added: subtract(after.rows, before.rows, row.domain),
      removed: subtract(before.rows, after.rows, row.domain),
    }
  }

  async list(filter: ChangeFilter, { page, page_size }: { page: number; page_size: number }) {
    const { sql, values } = whereOf(filter)
    const count = this.#database
      .prepare<[object], number>(`select count(*) from changes ${sql}`)
      .pluck()
    const rows = this.#database.prepare<[object], ChangeRow>(
      `select ${listedColumns} from changes ${sql} order by id desc limit :limit offset :offset`,
    )
    const window = { limit: page_size, offset: (page - 1) * page_size }
    return {
      changes: rows.all({ ...values, ...window }).map(toStoredChange),
      total: count.get(values) ?? 0,
    }
  }

  async prune(before: Date): Promise<number> {
    return this.#write(() => {
      const pruned = this.#statements.pruneChanges.run(before.getTime()).changes
      this.#statements.pruneSends.run(Math.min(before.getTime(), this.#now() - keyMs))
      this.#statements.pruneZones.run()
      return pruned
    })
  }

  isWritable(): boolean {
    if (this.#now() - this.#probe.at >= probeEveryMs) {
      try {
        this.#write(() => this.#statements.probe.run(this.#now()))
      } catch {
        // `#write` has noted the failure.
      }
    }
    return this.#probe.isWritable
  }

  #endColumns(end: { effect: ChangeEffect } | { problem: StoredProblem }) {
    if ('problem' in end) {
      const nothing = {
        before: null,
        after: null,
        emailTypeBefore: null,
        emailTypeAfter: null,
        summary: null,
      }
      // Nothing was sent: a failure that may pass is not the answer to a repeated request.
      const releaseKey = end.problem.status >= 500 ? 1 : 0
      const problem = JSON.stringify(end.problem)
      return { ...nothing, status: 'refused', warnings: '[]', problem, releaseKey }
    }
    const { before, after, warnings } = end.effect
    const records = (rows: Row[]) => rows.map((row) => toRecord(row, before.domain))
    const added = records(subtract(after.rows, before.rows, before.domain))
    const removed = records(subtract(before.rows, after.rows, before.domain))
    return {
      status: 'confirmed',
      before: this.#zones.put(before),
      after: this.#zones.put(after),
      emailTypeBefore: before.emailType ?? null,
      emailTypeAfter: after.emailType ?? null,
      summary: JSON.stringify(summarize(added, removed, after.rows.length - added.length)),
      warnings: JSON.stringify(warnings),
      problem: null,
      releaseKey: 0,
    }
  }

  #write<Result>(run: () => Result): Result {
    try {
      const result = this.#database.transaction(run)()
      this.#probe = { at: this.#now(), isWritable: true }
      return result
    } catch (error) {
      this.#probe = { at: this.#now(), isWritable: false }
      throw toStorageError(error)
    }
  }
}

const prepare = (database: Database) => ({
  enqueue: database.prepare(
    `insert into changes (domain, status, by, token, request_id, reason, is_async, verified, created_at,
       idempotency_key, fingerprint, warnings, request)
     values (:domain, 'queued', :by, :token, :request_id, :reason, :isAsync, 0, :now, :idempotency_key,
       :fingerprint, '[]', :request)`,
  ),
  queuedDomains: database
    .prepare<[], string>(
      `select domain from changes where status = 'queued' group by domain order by min(id)`,
    )
    .pluck(),
  queued: database.prepare<[string], { id: number; request: string }>(
    `select id, request from changes where status = 'queued' and domain = ? order by id limit 100`,
  ),
  claim: database.prepare(
    `update changes set status = 'sending' where id = ? and status = 'queued'`,
  ),
  recover: database.prepare(
    `update changes set status = iif(is_async = 1, 'queued', 'cancelled'),
       ended_at = iif(is_async = 1, null, ?), idempotency_key = iif(is_async = 1, idempotency_key, null)
     where status = 'sending' and (send_id is null or exists
       (select 1 from sends where sends.id = send_id and state in ('refused', 'unsent')))`,
  ),
  cancel: database.prepare(
    `update changes set status = 'cancelled', ended_at = :now where id = :id and status = 'queued'`,
  ),
  requeue: database.prepare(
    `update changes set status = 'queued', ended_at = null, sent_at = null, problem = null where id = ?`,
  ),
  endUnsent: database.prepare(
    `update changes set status = :status, ended_at = :now, before = :before, after = :after, problem = :problem,
       email_type_before = :emailTypeBefore, email_type_after = :emailTypeAfter, summary = :summary,
       warnings = :warnings, verified = 1, request = null, sent_at = null,
       idempotency_key = case when :releaseKey then null else idempotency_key end where id = :id`,
  ),
  find: database.prepare<[number], ChangeRow>(`select ${listedColumns} from changes where id = ?`),
  findByKey: database.prepare<
    [{ by: string; key: string; since: number }],
    { id: number; fingerprint: string }
  >(
    `select id, fingerprint from changes where by = :by and idempotency_key = :key and created_at > :since
     order by id desc limit 1`,
  ),
  zones: database.prepare<
    [number],
    { domain: string; before: string; after: string; delta: Buffer | null }
  >('select domain, before, after, delta from changes where id = ? and before is not null'),
  pruneChanges: database.prepare('delete from changes where ended_at < ?'),
  pruneSends: database.prepare(
    `delete from sends where started_at < ? and state not in ('open', 'unknown', 'unverified')
       and not exists (select 1 from changes where send_id = sends.id)`,
  ),
  pruneZones: database.prepare(
    `delete from zones where digest not in (
       select before from changes where before is not null union select after from changes where after is not null
       union select base from sends union select zone from sends
       union select found from sends where found is not null)`,
  ),
  probe: database.prepare('update write_probe set at = ?'),
})
