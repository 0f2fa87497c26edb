import { appendEvents } from '@domains-and-files/events'
import { slices } from '@domains-and-files/http'
import { join, list, name, now, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import type { HostRecord } from '../dns/record.ts'
import { changesOf, differenceOf, type Zone } from '../dns/zone.ts'
import { idempotencyKeyReused, tooManyChanges } from '../errors.ts'
import {
  type ChangeEffect,
  type ChangeOutcome,
  type ChangeRequest,
  type ChangeSummary,
  outsideReason,
  toStoredProblem,
  type Warning,
} from './change.ts'
import { awaitedMs } from './replicas/awaited-changes.ts'
import { changesChannel, leaseNow } from './replicas/leases.ts'
import { type ChangeRow, type changeEvents, listedColumns } from './stored-change.ts'
import { compress, getZones, putZones, zoneDigest } from './zone-snapshots.ts'

// The rows of changes, within the transactions of the ledger.

const changes = name('changes')

/** Asynchronous changes that may be queued for one user, whose tokens count together, and for all. */
const maxQueuedOfUser = 1_000
const maxQueued = 10_000
const maxQueuedBytes = 256 * 1024 * 1024

/** How long an idempotency key stands for one request. */
const keyMs = 86_400_000

/**
 * Queues a change, or finds the one that the same caller made with the same idempotency key. With its `effect` it is
 * proposed. One with a reason, of the service itself, is in its batch already: no other batch takes it.
 * @throws 422 `idempotency_key_reused` for another request under the same key, 429 `too_many_changes`.
 */
export async function insertChange(
  transaction: SqlTransaction,
  request: ChangeRequest,
  options: { isAsync: boolean; effect?: ChangeEffect | undefined },
): Promise<KnownRequest & { isNew: boolean }> {
  const { isAsync, effect } = options
  const isAwaited = request.reason === undefined
  const caller = request.callerId ?? request.by
  if (request.idempotency)
    await transaction.run(sql`update ${changes} set idempotency_key = null
      where ${isOfKey(request)} and created_at <= ${now} - ${keyMs}`)
  const inserted = await transaction.get<{ id: number }>(sql`
    insert into ${changes} (domain, by, token, caller, request_id, reason, idempotency_key, fingerprint, request,
      status, is_async, verified, created_at, awaited_until, warnings)
    values (${request.domain}, ${request.by}, ${request.token}, ${caller}, ${request.requestId}, ${request.reason},
      ${request.idempotency?.key}, ${request.idempotency?.fingerprint}, ${JSON.stringify(request)},
      ${effect ? 'proposed' : 'queued'}, ${isAsync}, 0, ${now}, ${isAwaited ? sql`${leaseNow} + ${awaitedMs}` : 0}, '[]')
    on conflict (caller, idempotency_key) where idempotency_key is not null do nothing returning id`)
  if (inserted) {
    const { id } = inserted
    if (isAsync) await checkQueue(transaction, request.by)
    if (isAwaited) await notify(transaction, request.domain)
    if (effect) {
      const proposed = await storeEffects(transaction, [{ ...effect, id }])
      await appendChangeEvents(transaction, proposed)
    }
    return { id, requestId: request.requestId, isNew: true }
  }
  const known = await findByKey(transaction, request)
  // Its key was released between the two statements.
  return known ? { ...known, isNew: false } : insertChange(transaction, request, options)
}

export const effectOf = (before: Zone, after = before, warnings: Warning[] = []): ChangeEffect => ({
  before,
  after,
  ...differenceOf(before, after),
  warnings,
})

/** Records what reads have shown as changed outside; `first`, `since`: when they showed it first, and last did not. */
export async function insertOutsideChange(
  transaction: SqlTransaction,
  { before, after, first, since }: { before: Zone; after: Zone; first: number; since: number },
): Promise<number> {
  const row = await transaction.get<{ id: number }>(sql`
    insert into ${changes} (domain, by, caller, request_id, reason, status, is_async, verified, created_at, sent_at,
      ended_at, seen_since, warnings)
    values (${before.domain}, '', '', ${outsideReason}, ${outsideReason}, 'confirmed', 0, 1, ${first}, ${first},
      ${now}, ${since}, '[]') returning id`)
  if (!row) throw new Error('change was not inserted')
  const stored = await storeEffects(transaction, [{ id: row.id, ...effectOf(before, after) }])
  await appendChangeEvents(transaction, stored)
  return row.id
}

const isOfKey = (request: ChangeRequest) =>
  sql`caller = ${request.callerId ?? request.by} and idempotency_key = ${request.idempotency?.key}`

/** A change, and which request has made it: a standby that is promoted without the change may give its id again. */
export type KnownRequest = Pick<ChangeRequest, 'requestId'> & { id: number }

/** @throws 422 `idempotency_key_reused` where another request used the key of this one. */
export async function findByKey(transaction: SqlTransaction, request: ChangeRequest) {
  if (!request.idempotency) return undefined
  const known = await transaction.get<KnownRequest & { fingerprint: string }>(sql`
    select id, request_id as "requestId", fingerprint from ${changes} where ${isOfKey(request)}`)
  if (known && known.fingerprint !== request.idempotency.fingerprint) throw idempotencyKeyReused()
  return known
}

/** @throws 429 `too_many_changes` where the change just queued exceeds a limit. */
async function checkQueue(transaction: SqlTransaction, user: string): Promise<void> {
  const row = await transaction.get<{ own: number; total: number; bytes: number }>(sql`
    select count(*) as total, sum(case when by = ${user} then 1 else 0 end) as own,
      sum(octet_length(request)) as bytes
    from ${changes} where status in ('queued', 'proposed') and is_async = 1`)
  const { own, total, bytes } = row ?? { own: 0, total: 0, bytes: 0 }
  if (own > maxQueuedOfUser) throw tooManyChanges(`You have ${maxQueuedOfUser} queued changes`)
  if (total > maxQueued || bytes > maxQueuedBytes)
    throw tooManyChanges('All callers together have too many queued changes')
}

/** Stores effects of changes with their zones, and `zones`; sets the columns of `set`, too. @returns the rows. */
export async function storeEffects(
  transaction: SqlTransaction,
  effects: (ChangeEffect & { id: number })[],
  { zones = [], set = sql`` }: { zones?: Zone[]; set?: Statement } = {},
) {
  await putZones(transaction, [...zones, ...effects.flatMap(({ before, after }) => [before, after])])
  if (effects.length === 0) return []
  const rows: Statement[] = []
  const nextSlice = slices()
  for (const effect of effects) {
    await nextSlice()
    const { id, before, after, warnings } = effect
    const values = [
      ...[zoneDigest(before), zoneDigest(after), before.emailType, after.emailType],
      ...[JSON.stringify(warnings), JSON.stringify(summarize(effect))],
    ]
    rows.push(sql`(cast(${id} as bigint), ${join(values)})`)
  }
  // Columns of a list of values have these names in both databases.
  return transaction.all<ChangeRow>(sql`update ${changes} set ${set} before = effect.column2,
      after = effect.column3, email_type_before = effect.column4, email_type_after = effect.column5,
      warnings = effect.column6, summary = effect.column7
    from (values ${join(rows)}) as effect where changes.id = effect.column1 returning ${listedColumns}`)
}

/** Backoff before a batch may take a failed asynchronous change again: 5 s, doubled each time, at most 300 s. */
export const maxPauseMs = 300_000
const pauseMs = sql`case when attempts >= 6 then ${maxPauseMs} else 5000 * (1 << attempts) end`

/**
 * Ends changes, or queues them again. Without `isHeld` another process may hold the domain's lease: then only changes
 * that it has not sent are ended.
 */
export async function endChanges(transaction: SqlTransaction, outcomes: ChangeOutcome[], isHeld: boolean) {
  if (outcomes.length === 0) return
  const known = await transaction.all<KnownChange>(sql`select id, status, before, after
    from ${changes} where id in (${list(outcomes.map(({ id }) => id))})`)
  const knownOf = new Map(known.map((each) => [each.id, each]))
  for (const { id, zones } of isHeld ? outcomes : []) if (zones) await replaceZones(transaction, knownOf.get(id), zones)
  const rows = outcomes.map(({ id, status, error, ...rest }) => {
    const { verified = true, releaseKey = false, isUnsent = false } = rest
    const isUndone = isUnsent || status === 'refused'
    const { warnings = isUndone ? [] : undefined } = rest
    const isStored = error !== undefined && (status === 'refused' || status === 'unconfirmed')
    const problem = isStored ? JSON.stringify(toStoredProblem(error)) : undefined
    const reason = status === 'cancelled' ? 'superseded' : undefined
    return sql`(cast(${id} as bigint), ${status}, cast(${verified} as integer), ${warnings && JSON.stringify(warnings)},
      ${problem}, ${reason}, cast(${releaseKey} as integer), cast(${isUnsent} as integer))`
  })
  const mayEnd = isHeld
    ? sql`(ended.column8 = 0 or status = 'queued')`
    : sql`ended.column8 = 1 and ended.column2 <> 'queued' and status = 'queued'`
  const ended = await transaction.all<ChangeRow>(sql`
    update ${changes} set status = ended.column2, verified = ended.column3,
      warnings = coalesce(ended.column4, warnings), problem = ended.column5, reason = coalesce(ended.column6, reason),
      idempotency_key = case when ended.column7 = 1 then null else idempotency_key end,
      ended_at = case when ended.column2 = 'queued' then null else ${now} end,
      sent_at = case when ended.column2 = 'queued' or ended.column8 = 1 then null else coalesce(sent_at, ${now}) end,
      request = case when ended.column2 = 'queued' then request end,
      not_before = case when ended.column2 = 'queued' and ended.column8 = 1 then ${now} + ${pauseMs} else not_before end,
      attempts = case when ended.column2 = 'queued' then attempts + ended.column8 else attempts end
    from (values ${join(rows)}) as ended where changes.id = ended.column1 and ${mayEnd} returning ${listedColumns}`)
  const isEnded = new Set(ended.map(({ id }) => id))
  const stored = await storeEffects(
    transaction,
    outcomes.flatMap(({ id, effect }) => (effect && isEnded.has(id) ? { ...effect, id } : [])),
  )
  // The rows with effects replace those that an earlier send, or the proposal, has left.
  const rowOf = new Map([...ended, ...stored].map((row) => [row.id, row]))
  const changed = [...rowOf.values()].filter(({ id, status }) => knownOf.get(id)?.status !== status)
  changed.sort((one, other) => one.id - other.id)
  await appendChangeEvents(transaction, changed)
}

/** Before its end; zones are digests. */
type KnownChange = Pick<ChangeRow, 'id' | 'status'> & Record<'before' | 'after', string | null>

/** Cancels queued and proposed changes, and releases their idempotency keys. @returns how many. */
export const cancelAll = (transaction: SqlTransaction, which: Statement, reason?: string) =>
  transaction.run(sql`update ${changes} set status = 'cancelled', ended_at = ${now}, request = null,
      idempotency_key = null, reason = coalesce(${reason}, reason)
    where ${which} and status in ('queued', 'proposed')`)

// The zones become those that were read; what the change itself did is stored beside them.
async function replaceZones(
  transaction: SqlTransaction,
  intended: KnownChange | undefined,
  { before, after }: Pick<ChangeEffect, 'before' | 'after'>,
) {
  if (!intended?.before || !intended.after) return
  const zoneOf = await getZones(transaction, before.domain, [intended.before, intended.after])
  const delta = differenceOf(zoneOf(intended.before), zoneOf(intended.after))
  await putZones(transaction, [before, after])
  await transaction.run(sql`update ${changes} set before = ${zoneDigest(before)}, after = ${zoneDigest(after)},
    email_type_before = ${before.emailType}, email_type_after = ${after.emailType},
    delta = ${await compress(JSON.stringify(delta))} where id = ${intended.id}`)
}

/** Maximum characters of JSON for each of `added` and `removed` in a summary. */
const maxLength = 4_096

/** Bounds what one change contributes to a list: the records beyond `maxLength` are only counted. */
function summarize(effect: ChangeEffect): ChangeSummary {
  const { added, removed, kept } = changesOf(effect)
  const shown = { added: fitting(added), removed: fitting(removed), kept }
  const omitted = { added: added.length - shown.added.length, removed: removed.length - shown.removed.length }
  return omitted.added + omitted.removed === 0 ? shown : { ...shown, omitted }
}

function fitting(records: HostRecord[]): HostRecord[] {
  let length = 0
  const end = records.findIndex((record) => {
    length += JSON.stringify(record).length
    return length > maxLength
  })
  return end === -1 ? records : records.slice(0, end)
}

/** Notifies all replicas at the end of the transaction. The embedded form has only one process. */
export async function notify(transaction: SqlTransaction, domain: string): Promise<void> {
  if (transaction.dialect === 'postgres') await transaction.get(sql`select pg_notify(${changesChannel}, ${domain})`)
}

/** Call it last in a transaction. */
async function appendChangeEvents(transaction: SqlTransaction, rows: ChangeRow[]) {
  const added = rows.flatMap((row) => {
    const type = typeOf(row)
    const requestId = ['', 'domain-service'].includes(row.by) ? undefined : row.request_id
    return type ? [{ type, by: row.by || undefined, requestId, data: row }] : []
  })
  await appendEvents(transaction, added)
}

function typeOf({ status, reason, ...row }: ChangeRow): (typeof changeEvents)[number] | undefined {
  if (status === 'proposed') return 'change.proposed'
  if (status === 'refused') return 'change.refused'
  if (status === 'unconfirmed') return 'change.unconfirmed'
  if (status !== 'confirmed' || row.summary === null) return undefined
  const { added, removed, omitted } = JSON.parse(row.summary) as ChangeSummary
  const isChanged = added.length + removed.length > 0 || omitted !== undefined
  if (!isChanged && row.email_type_before === row.email_type_after) return undefined
  return reason === outsideReason ? 'zone.changed_outside' : 'zone.changed'
}
