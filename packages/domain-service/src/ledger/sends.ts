import {
  join,
  list,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import { slices } from '../clock.ts'
import {
  type LateSend,
  lateMs,
  type OpenSend,
  type RecentSend,
  type SendIntent,
  type SendOutcome,
  type Snapshot,
} from './change.ts'
import { type EffectColumns, effectColumns, endChanges, insertSending, keyMs } from './changes.ts'
import { leaseNow } from './replicas/leases.ts'
import { type ChangeRow, listedColumns, toStoredChange } from './stored-change.ts'
import { getZones, putZones, unusedMs } from './zone-snapshots.ts'

// The sends, and the changes that they carry.

const sends = name('sends')
const changes = name('changes')

/** How long the registrar may show the zone that a send replaced. */
export const recentMs = 60_000

/** A row of `sends`; zones are digests, times are milliseconds since 1970. */
interface SendRow {
  id: number
  domain: string
  state: string
  base: string
  zone: string
  found: string | null
  started_at: number
}

const isOpen = sql`state in ('open', 'unknown', 'unverified')`

/** Records the intent of a send and of its changes. */
export async function startSend(transaction: SqlTransaction, send: SendIntent) {
  const zones = send.intents.flatMap(({ before, after }) => [before, after])
  const digestOf = await putZones(transaction, [send.base, send.zone, ...zones])
  const row = await transaction.get<{ id: number }>(sql`
    insert into ${sends} (domain, state, base, zone, started_at)
    values (${send.domain}, 'open', ${digestOf(send.base)}, ${digestOf(send.zone)}, ${now}) returning id`)
  if (!row) throw new Error('send was not inserted')
  const { id } = row
  if (send.repairs.length > 0)
    await transaction.run(sql`update ${sends} set unanswered = unanswered - 1, repaired_by = ${id}
      where id in (${list(send.repairs)})`)
  const nextSlice = slices()
  const effects: EffectColumns[] = []
  for (const intent of send.intents) {
    await nextSlice()
    effects.push(effectColumns(intent, digestOf))
  }
  const known = send.intents.flatMap((intent, at) =>
    intent.id === undefined
      ? []
      : [sql`(cast(${intent.id} as bigint), ${join(effects[at] ?? [])})`],
  )
  if (known.length > 0)
    await transaction.run(sql`update ${changes} set status = 'sending', sent_at = coalesce(sent_at, ${now}),
        send_id = ${id}, before = effect.column2, after = effect.column3, email_type_before = effect.column4,
        email_type_after = effect.column5, warnings = effect.column6, summary = effect.column7
      from (values ${join(known)}) as effect where changes.id = effect.column1`)
  const changeIds: number[] = []
  for (const [at, { id: known, request }] of send.intents.entries()) {
    await nextSlice()
    const effect = effects[at] ?? []
    changeIds.push(known ?? (await insertSending(transaction, request, { sendId: id, effect })))
  }
  return { id, changeIds }
}

export async function endSend(transaction: SqlTransaction, id: number, outcome: SendOutcome) {
  const { found, state, unanswered } = outcome
  const digest = found && (await putZones(transaction, [found]))(found)
  await transaction.run(sql`update ${sends} set state = ${state}, found = coalesce(${digest}, found),
      ended_at = ${now}, unanswered = unanswered + ${unanswered},
      given_up_at = coalesce(given_up_at, case when ${unanswered} > 0 then ${now} end) where id = ${id}`)
  if (outcome.releaseRepairs)
    await transaction.run(sql`update ${sends} set unanswered = unanswered + 1, repaired_by = null
      where repaired_by = ${id}`)
  await endChanges(transaction, outcome.changes)
}

export async function openSends(database: Sql, domain: string): Promise<OpenSend[]> {
  const rows = await database.all<SendRow & { next_base: string | null }>(sql`
    select *, (select next.base from ${sends} next where next.domain = sends.domain and next.id > sends.id
        and next.state = 'settled' order by next.id limit 1) as next_base
    from ${sends} where domain = ${domain} and ${isOpen} order by id`)
  if (rows.length === 0) return []
  const zoneOf = await getZones(
    database,
    rows.flatMap(({ base, zone, next_base }) => [base, zone, next_base]),
  )
  const carried = await database.all<ChangeRow & { send_id: number }>(sql`
    select ${listedColumns}, send_id from ${changes} where send_id in (${list(rows.map(({ id }) => id))}) order by id`)
  return rows.map((row) => ({
    id: row.id,
    domain: row.domain,
    // The query selects these states only.
    state: row.state as OpenSend['state'],
    startedAt: new Date(row.started_at),
    base: zoneOf(row.base),
    zone: zoneOf(row.zone),
    nextBase: row.next_base === null ? undefined : zoneOf(row.next_base),
    changes: carried.filter(({ send_id }) => send_id === row.id).map(toStoredChange),
  }))
}

export async function lateSends(database: Sql, domain: string): Promise<LateSend[]> {
  const given = await database.all<SendRow>(sql`select * from ${sends} where domain = ${domain}
      and given_up_at > ${now} - ${lateMs} and unanswered > 0 and state not in ('open', 'unsent')
    order by id desc limit 20`)
  if (given.length === 0) return []
  const last = await database.get<SendRow>(sql`select * from ${sends}
    where domain = ${domain} and state in ('settled', 'unverified') order by id desc limit 1`)
  const late = given.flatMap((send) => {
    const isOutdated = last !== undefined && last.id > send.id
    if (!isOutdated && send.state !== 'refused') return []
    return [{ send, confirmed: isOutdated ? (last.found ?? last.zone) : send.base }]
  })
  const zoneOf = await getZones(
    database,
    late.flatMap(({ send, confirmed }) => [send.zone, confirmed]),
  )
  return late.map(({ send, confirmed }) => ({
    id: send.id,
    zone: zoneOf(send.zone),
    confirmed: zoneOf(confirmed),
  }))
}

/** The zones that sends would leave which the registrar may carry out, or may have carried out. */
export async function possibleZones(database: SqlTransaction, domain: string): Promise<Snapshot[]> {
  const rows = await database.all<{ zone: string }>(sql`select distinct zone from ${sends}
    where domain = ${domain} and (${isOpen} or (given_up_at > ${now} - ${lateMs} and unanswered > 0))`)
  const zones = rows.map(({ zone }) => zone)
  return zones.map(await getZones(database, zones))
}

export async function recentSends(database: Sql, domain: string): Promise<RecentSend[]> {
  // An unknown send was last seen not done, which may have been an outdated answer.
  const rows = await database.all<{ base: string; zone: string; state: string }>(sql`
    select state, base, case when state = 'unknown' then zone else coalesce(found, zone) end as zone from ${sends}
    where domain = ${domain} and coalesce(ended_at, started_at) > ${now} - ${recentMs}
      and state not in ('refused', 'unsent') and (state <> 'closed' or found is not null)
    order by id desc limit 5`)
  const zoneOf = await getZones(
    database,
    rows.flatMap(({ base, zone }) => [base, zone]),
  )
  return rows.map(({ base, zone, state }) => ({
    base: zoneOf(base),
    zone: zoneOf(zone),
    isDone: state !== 'open' && state !== 'unknown',
  }))
}

/** A domain whose lease is held is taken care of. */
export async function unsettledDomains(database: Sql): Promise<string[]> {
  const rows = await database.all<{ domain: string }>(sql`
    select domain from (select domain from ${sends} where ${isOpen}
      union select domain from ${sends} where given_up_at > ${now} - ${lateMs} and unanswered > 0) unsettled
    where not exists (select 1 from ${name('leases')} where name = domain and until > ${leaseNow})`)
  return rows.map(({ domain }) => domain)
}

/** Deletes sends of pruned changes, and zones that nothing refers to. */
export async function prune(transaction: SqlTransaction, before: Date) {
  await transaction.run(sql`delete from ${sends}
    where started_at < ${before.getTime()} and started_at < ${now} - ${keyMs} and not (${isOpen})
      and not exists (select 1 from ${changes} where send_id = sends.id)`)
  await transaction.run(sql`delete from ${name('zones')} where used_at < ${now} - ${unusedMs} and digest not in (
      select before from ${changes} where before is not null
      union select after from ${changes} where after is not null
      union select base from ${sends} union select zone from ${sends}
      union select found from ${sends} where found is not null
      union select zone from ${name('known_zones')})`)
}
