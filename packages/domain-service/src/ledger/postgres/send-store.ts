import type { Postgres, Transaction } from '@domains-and-files/persistence'
import { subtract, toRecord, type Zone } from '../../dns/record.ts'
import { summarize } from '../change-summary.ts'
import type {
  ChangeEffect,
  ChangeOutcome,
  Intent,
  LateSend,
  OpenSend,
  RecentSend,
  SendIntent,
  SendOutcome,
  Snapshot,
} from '../ledger.ts'
import { compress } from '../snapshot-encoding.ts'
import { type ChangeRow, requestColumns, toStoredChange } from '../stored-change.ts'
import { lateMs, recentMs, type SendRow } from '../stored-send.ts'
import * as sql from './send-statements.ts'
import { getZones, putZones } from './zone-snapshots.ts'

/** The columns of a change that its effect determines. */
export function effectColumns(
  { before, after, warnings }: ChangeEffect,
  digests: ReadonlyMap<Snapshot, string>,
) {
  const added = subtract(after.rows, before.rows, before.domain)
  const removed = subtract(before.rows, after.rows, before.domain)
  const records = (rows: Zone['rows']) => rows.map((row) => toRecord(row, before.domain))
  const kept = after.rows.length - added.length
  return {
    before: digests.get(before) ?? null,
    after: digests.get(after) ?? null,
    email_type_before: before.emailType ?? null,
    email_type_after: after.emailType ?? null,
    warnings: JSON.stringify(warnings),
    summary: JSON.stringify(summarize(records(added), records(removed), kept)),
  }
}

/** Records the intent of a send and of its changes. */
export async function startSend(transaction: Transaction, send: SendIntent) {
  const zones = send.intents.flatMap(({ before, after }) => [before, after])
  const digests = await putZones(transaction, [send.base, send.zone, ...zones])
  const [row] = await transaction.query<{ id: number }>(sql.insertSend, [
    send.domain,
    digests.get(send.base),
    digests.get(send.zone),
  ])
  const id = row?.id ?? 0
  if (send.repairs.length > 0) await transaction.query(sql.repair, [id, send.repairs])
  const effects = send.intents.map((intent) => ({
    id: intent.id,
    ...effectColumns(intent, digests),
  }))
  const known = effects.filter((effect) => effect.id !== undefined)
  if (known.length > 0) await transaction.query(sql.updateChanges, [id, JSON.stringify(known)])
  const changeIds: number[] = []
  for (const [at, intent] of send.intents.entries())
    changeIds.push(intent.id ?? (await insertChange(transaction, intent, id, effects[at])))
  return { id, changeIds }
}

async function insertChange(
  transaction: Transaction,
  { request }: Intent,
  sendId: number,
  effect: object | undefined,
): Promise<number> {
  const columns = JSON.stringify({ ...requestColumns(request), ...effect, send_id: sendId })
  const [row] = await transaction.query<{ id: number }>(sql.insertChange, [columns])
  return row?.id ?? 0
}

export async function endSend(transaction: Transaction, id: number, outcome: SendOutcome) {
  const { found, state, unanswered } = outcome
  const digest = found && (await putZones(transaction, [found])).get(found)
  await transaction.query(sql.endSend, [id, state, digest ?? null, unanswered])
  if (outcome.releaseRepairs) await transaction.query(sql.releaseRepairs, [id])
  await endChanges(transaction, outcome.changes)
}

export async function endChanges(transaction: Transaction, outcomes: ChangeOutcome[]) {
  if (outcomes.length === 0) return
  const rows = outcomes.map(({ id, status, verified, warnings, problem, releaseKey }) => ({
    id,
    status,
    verified: verified ? 1 : 0,
    warnings: JSON.stringify(warnings),
    problem: problem ? JSON.stringify(problem) : null,
    release_key: releaseKey ?? false,
  }))
  await transaction.query(sql.endChanges, [JSON.stringify(rows)])
  for (const { id, zones } of outcomes) if (zones) await replaceZones(transaction, id, zones)
}

// The zones become those that were read; what the change itself did is stored beside them.
async function replaceZones(
  transaction: Transaction,
  id: number,
  { before, after }: { before: Zone; after: Zone },
) {
  const [intended] = await transaction.query<{ before: string; after: string }>(
    'select before, after from domain_service.changes where id = $1 and before is not null',
    [id],
  )
  if (!intended) return
  const zoneOf = await getZones(transaction, [intended.before, intended.after])
  const [from, to] = [zoneOf(intended.before), zoneOf(intended.after)]
  const delta = {
    added: subtract(to.rows, from.rows, before.domain),
    removed: subtract(from.rows, to.rows, before.domain),
  }
  const digests = await putZones(transaction, [before, after])
  await transaction.query(sql.setZones, [
    id,
    digests.get(before),
    digests.get(after),
    before.emailType ?? null,
    after.emailType ?? null,
    compress(JSON.stringify(delta)),
  ])
}

export async function openSends(postgres: Postgres, domain: string): Promise<OpenSend[]> {
  const rows = await postgres.query<SendRow & { next_base: string | null }>(sql.open, [domain])
  if (rows.length === 0) return []
  const zoneOf = await getZones(
    postgres,
    rows.flatMap(({ base, zone, next_base }) => [base, zone, next_base]),
  )
  const changes = await postgres.query<ChangeRow & { send_id: number }>(sql.changesOf, [
    rows.map(({ id }) => id),
  ])
  return rows.map((row) => ({
    id: row.id,
    domain: row.domain,
    // The query selects these states only.
    state: row.state as OpenSend['state'],
    startedAt: new Date(row.started_at),
    base: zoneOf(row.base),
    zone: zoneOf(row.zone),
    nextBase: row.next_base === null ? undefined : zoneOf(row.next_base),
    changes: changes.filter(({ send_id }) => send_id === row.id).map(toStoredChange),
  }))
}

export async function lateSends(postgres: Postgres, domain: string): Promise<LateSend[]> {
  const given = await postgres.query<SendRow>(sql.givenUp, [domain, lateMs])
  if (given.length === 0) return []
  const [last] = await postgres.query<SendRow>(sql.last, [domain])
  const late = given.flatMap((send) => {
    const isOutdated = last !== undefined && last.id > send.id
    if (!isOutdated && send.state !== 'refused') return []
    return [{ send, confirmed: isOutdated ? (last.found ?? last.zone) : send.base }]
  })
  const zoneOf = await getZones(
    postgres,
    late.flatMap(({ send, confirmed }) => [send.zone, confirmed]),
  )
  return late.map(({ send, confirmed }) => ({
    id: send.id,
    zone: zoneOf(send.zone),
    confirmed: zoneOf(confirmed),
  }))
}

export async function recentSends(postgres: Postgres, domain: string): Promise<RecentSend[]> {
  const rows = await postgres.query<{ base: string; zone: string; state: string }>(sql.recent, [
    domain,
    recentMs,
  ])
  const zoneOf = await getZones(
    postgres,
    rows.flatMap(({ base, zone }) => [base, zone]),
  )
  return rows.map(({ base, zone, state }) => ({
    base: zoneOf(base),
    zone: zoneOf(zone),
    isDone: state !== 'open' && state !== 'unknown',
  }))
}

export async function unsettledDomains(postgres: Postgres): Promise<string[]> {
  const rows = await postgres.query<{ domain: string }>(sql.unsettled, [lateMs])
  return rows.map(({ domain }) => domain)
}
