import { forUpdate, list, name, now, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import type { Zone } from '../dns/zone.ts'
import {
  type ChangeEffect,
  lateMs,
  type SendIntent,
  type SendOutcome,
  type SendState,
  type StartedSend,
} from './change.ts'
import { endChanges, insertChange, keyMs, storeEffects } from './changes.ts'
import { getZones, putZones, unusedMs, zoneDigest } from './zone-snapshots.ts'

// The sends, and the changes that they carry.

const sends = name('sends')
const changes = name('changes')

/** How long the registrar may show the zone that a send replaced. */
export const recentMs = 60_000

// The exact text of the index: SQLite uses a partial index only if the query repeats its condition.
export const isOpen = sql`state in ('open', 'unknown', 'unverified')`

/** Given up within `lateMs`: the registrar may still carry it out. */
export const isGivenUp = sql`given_up_at > ${now} - ${lateMs} and unanswered > 0`

/** A send that a batch has to know: see `DomainSends`. Zones are digests, times are milliseconds since 1970. */
export interface SendRow {
  role: 'recent' | 'open' | 'late'
  id: number
  state: SendState | 'open'
  base: string
  zone: string
  found: string | null
  started_at: number
  unanswered: number
  /** Of an open send: the zone before the next one that has settled. */
  next_base: string | null
  /** Of a late send: the zone that the last one after it left. */
  latest: string | null
}

/** The sends of a domain that a batch has to know, newest first. */
export function readSends(database: SqlTransaction, domain: string): Promise<SendRow[]> {
  const isOf = sql`domain = ${domain}`
  // Each by its index: for an `or` SQLite reads the domain.
  const isRecent = sql`id in (select id from ${sends} where ${isOf} and ended_at > ${now} - ${recentMs}
    union select id from ${sends} where ${isOf} and ${isOpen} and ended_at is null and started_at > ${now} - ${recentMs})`
  return database.all<SendRow>(sql`
    select role, id, state, base, zone, found, started_at, unanswered,
      case when role = 'open' then (select next.base from ${sends} as next
        where next.domain = known.domain and next.id > known.id and next.state = 'settled'
        order by next.id limit 1) end as next_base,
      case when role = 'late' then (select coalesce(next.found, next.zone) from ${sends} as next
        where next.domain = known.domain and next.id > known.id and next.state in ('settled', 'unverified')
        order by next.id desc limit 1) end as latest
    from (
      select 'recent' as role, recent.* from (select * from ${sends}
        where ${isRecent} and state not in ('refused', 'unsent') and (state <> 'closed' or found is not null)
        order by id desc limit 5) as recent
      union all select 'open' as role, open.* from (select * from ${sends} where ${isOf} and ${isOpen}) as open
      union all select 'late' as role, late.* from (select * from ${sends}
        where ${isOf} and ${isGivenUp} and state not in ('open', 'unsent') order by id desc limit 20) as late
    ) as known order by id desc`)
}

/**
 * Records the intent of a send and of its changes, unless some of these are not queued any more, or their client does not
 * wait any more: then nothing is recorded. The others are locked. None is `gone` if its client has just come back.
 */
export async function startSend(
  transaction: SqlTransaction,
  send: SendIntent,
  isAwaited: Statement,
): Promise<Pick<StartedSend, 'id' | 'changeIds' | 'gone'>> {
  const { base, zone, intents, repairs } = send
  // The service's own changes are not in the queue.
  const queued = intents.flatMap(({ write }) => (write.request.reason || !write.id ? [] : [write.id]))
  const isQueued = sql`id in (${list(queued)}) and status = 'queued' and is_held = 0 and ${isAwaited} ${forUpdate}`
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
  return { id, changeIds: effects.map((effect) => effect.id), gone: new Set() }
}

/** A send as it is stored; zones are digests. */
export interface SentZone {
  id: number
  base: string
  zone: string
  /** Milliseconds since 1970. */
  started_at: number
  /** When the first of the late writes that this send repairs was started. */
  late_since: number | null
}

export async function endSend(transaction: SqlTransaction, id: number, outcome: SendOutcome): Promise<SentZone> {
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
  await endChanges(transaction, outcome.changes, true)
  return send
}

/** The zones of sends that the registrar may have carried out, or may still carry out. */
export async function possibleZones(database: SqlTransaction, domain: string): Promise<Zone[]> {
  const rows = await database.all<{ zone: string }>(sql`select zone from ${sends}
    where domain = ${domain} and ${isOpen} union select zone from ${sends} where domain = ${domain} and ${isGivenUp}`)
  const zones = rows.map(({ zone }) => zone)
  return zones.map(await getZones(database, domain, zones))
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
