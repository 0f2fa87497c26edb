import { inflateRawSync } from 'node:zlib'
import { slices } from '@domains-and-files/http'
import { list, name, now, type Sql, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { type Delta, differenceOf, type Zone } from '../dns/zone.ts'
import {
  type ChangeFilter,
  type ChangeRequest,
  type ChangeZones,
  type LateSend,
  lateMs,
  type QueuedChange,
  type RecentSend,
  type SendState,
} from './change.ts'
import { leaseNow } from './replicas/leases.ts'
import {
  type ChangeRow,
  conditionOf,
  isPending,
  listedColumns,
  type StoredChange,
  toStoredChange,
} from './stored-change.ts'
import { getZones } from './zone-snapshots.ts'

const changes = name('changes')
const sends = name('sends')

/** Of one batch: changes, and bytes of their JSON, which takes several times as much memory once parsed. */
const maxReady = 1_000
const maxReadyBytes = 16 * 1024 * 1024

/** How long the registrar may show the zone that a send replaced. */
export const recentMs = 60_000

// SQLite uses a partial index only if the query repeats its condition.
export const isOpen = sql`state in ('open', 'unknown', 'unverified')`

/** Given up within `lateMs`: the registrar may still carry it out. */
export const isGivenUp = sql`given_up_at > ${now} - ${lateMs} and unanswered > 0`

/** `last`: the id of the last queued change. */
type ReadyRow = Record<'id' | 'last' | 'is_async', number> & { request: string | null }

type ZonesRow = Record<'domain' | 'before' | 'after', string> & { found: string | null; delta: Buffer | null }

/** Zones are digests, times are milliseconds since 1970. */
interface SendRow {
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

/** To be resolved by reading the zone. */
export interface OpenSend {
  id: number
  domain: string
  /** `open`: its outcome was never recorded, since the process ended or the disk failed. */
  state: 'open' | 'unverified' | 'unknown'
  startedAt: Date
  base: Zone
  zone: Zone
  /** The zone as it was read before the next send that has settled, if there is one. */
  nextBase?: Zone | undefined
  changes: StoredChange[]
}

/** The sends of a domain that a batch has to know. */
export interface DomainSends {
  /** The last five within a minute, newest first, without those that the registrar did not accept. */
  recent: RecentSend[]
  /** Oldest first. */
  open: OpenSend[]
  /** Superseded or refused, and given up in the last ten minutes; newest first. */
  late: LateSend[]
}

/** The reads of the ledger. */
export class ChangeHistory {
  protected readonly sql: Sql
  /** Whether a batch may begin a change: it is asynchronous, or its client waits for it. */
  protected readonly isAwaited: Statement

  constructor(database: Sql, isAwaited: Statement) {
    this.sql = database
    this.isAwaited = isAwaited
  }

  /** Domains with asynchronous changes that a batch can take now. Callers take turns, each with its oldest change first. */
  async queuedDomains(): Promise<string[]> {
    const rows = await this.sql.all<{ domain: string }>(sql`select domain from (
        select domain, min(id) as oldest, row_number() over (partition by caller order by min(id)) as turn from ${changes}
        where ${isPending} and status = 'queued' and is_async = 1 and is_held = 0 and not_before <= ${now}
        group by domain, caller
      ) as waiting group by domain order by min(turn), min(oldest)`)
    return rows.map(({ domain }) => domain)
  }

  /** How many asynchronous changes are queued, and how many of them wait for an admin after a restore. */
  async countQueued(): Promise<{ queued: number; held: number }> {
    const row = await this.sql.get<{ total: number; held: number | null }>(sql`
      select count(*) as total, sum(is_held) as held from ${changes}
      where ${isPending} and status = 'queued' and is_async = 1`)
    const held = row?.held ?? 0
    return { queued: (row?.total ?? 0) - held, held }
  }

  /**
   * Queued changes that a batch of a domain can take now, oldest first, without the `known` ones. `upTo`: none is missing
   * up to this id. No change overtakes failed asynchronous ones: if one can be taken, the pauses of the others do not count.
   */
  async ready(domain: string, known: number[] = []) {
    const isQueued = sql`${isPending} and status = 'queued' and domain = ${domain} and ${this.isAwaited}`
    const rows = await this.sql.all<ReadyRow>(sql`
      select id, is_async, last, case when id in (${list([0, ...known])}) then null else request end as request from (
        select id, is_async, request, max(id) over () as last,
          sum(octet_length(request)) over (order by id) - octet_length(request) as earlier
        from ${changes} where ${isQueued} and is_held = 0
          and exists (select 1 from ${changes} where ${isQueued} and is_held = 0 and not_before <= ${now})
      ) queued where earlier < ${maxReadyBytes} order by id limit ${maxReady}`)
    const ready: QueuedChange[] = []
    const nextSlice = slices()
    for (const { id, is_async, request } of rows) {
      if (request === null) continue
      await nextSlice()
      // `accept` wrote this text.
      ready.push({ id, isAsync: is_async === 1, request: JSON.parse(request) as ChangeRequest })
    }
    const end = rows.at(-1)
    return { ready, upTo: end && end.id < end.last ? end.id : Infinity }
  }

  /** Whether a change of a domain is queued or under way. */
  async hasPending(domain: string): Promise<boolean> {
    const found = sql`select 1 from ${changes} where domain = ${domain} and ${isPending} limit 1`
    return (await this.sql.get(found)) !== undefined
  }

  /** Whether a send of a domain has no outcome, since its process has ended or could not record it. */
  async hasOpenSend(domain: string): Promise<boolean> {
    const found = sql`select 1 from ${sends} where domain = ${domain} and ${isOpen} and state = 'open' limit 1`
    return (await this.sql.get(found)) !== undefined
  }

  /** Read before the zone. */
  async sendsOf(domain: string): Promise<DomainSends> {
    const rows = await readSends(this.sql, domain)
    const digests = rows.flatMap((row) => [row.base, row.zone, row.found, row.next_base, row.latest])
    const zoneOf = await getZones(this.sql, domain, digests)
    const { recent = [], open = [], late = [] } = Object.groupBy(rows, ({ role }) => role)
    open.reverse()
    const ids = open.map(({ id }) => id)
    const read = sql`select ${listedColumns}, send_id from ${changes} where send_id in (${list(ids)}) order by id`
    const carried = open.length === 0 ? [] : await this.sql.all<ChangeRow & { send_id: number }>(read)
    return {
      // Decoded lazily: callers mostly need the newest zone only.
      recent: recent.map(({ base, zone, found, state }) => ({
        get base() {
          return zoneOf(base)
        },
        get zone() {
          // The zone found after an unknown send lacks its changes, but may be an outdated answer.
          return zoneOf(state === 'unknown' ? zone : (found ?? zone))
        },
        isDone: state !== 'open' && state !== 'unknown',
      })),
      open: open.map((row) => ({
        id: row.id,
        domain,
        state: row.state as OpenSend['state'], // The query selects these states only.
        startedAt: new Date(row.started_at),
        base: zoneOf(row.base),
        zone: zoneOf(row.zone),
        nextBase: row.next_base === null ? undefined : zoneOf(row.next_base),
        changes: carried.filter(({ send_id }) => send_id === row.id).map(toStoredChange),
      })),
      late: late.flatMap(({ id, state, unanswered, base, zone, latest }) => {
        const confirmed = latest ?? (state === 'refused' ? base : undefined)
        return confirmed === undefined ? [] : [{ id, unanswered, zone: zoneOf(zone), confirmed: zoneOf(confirmed) }]
      }),
    }
  }

  /** Domains with open sends, or with given-up sends younger than ten minutes, whose lease nobody holds. */
  unsettledDomains() {
    return this.sql.all<{ name: string; sentAt: number; now: number }>(sql`
      select domain as name, ${now} as now, coalesce((select max(ended_at) from ${sends} as later
          where later.domain = unsettled.domain and ended_at > ${now} - ${lateMs}), max(started_at)) as "sentAt"
      from (select domain, started_at from ${sends} where ${isOpen}
        union all select domain, started_at from ${sends} where ${isGivenUp}) unsettled
      where not exists (select 1 from ${name('leases')} where name = domain and until > ${leaseNow}) group by domain`)
  }

  async find(id: number) {
    const row = await this.sql.get<ChangeRow>(sql`select ${listedColumns} from ${changes} where id = ${id}`)
    return row && toStoredChange(row)
  }

  /** Those of these changes that have ended, or that the database has lost. */
  async ended(ids: number[]): Promise<number[]> {
    const found = sql`select id from ${changes} where id in (${list(ids)}) and ${isPending}`
    const pending = new Set((await this.sql.all<{ id: number }>(found)).map(({ id }) => id))
    return ids.filter((id) => !pending.has(id))
  }

  /** The zones of a change; `found`: the zone as it was found after its send, if there was one. */
  async zonesOf(id: number): Promise<(ChangeZones & { found?: Zone }) | undefined> {
    const row = await this.sql.get<ZonesRow>(sql`select domain, before, after, delta,
      (select found from ${sends} where id = send_id) as found
      from ${changes} where id = ${id} and before is not null`)
    if (!row) return undefined
    const zoneOf = await getZones(this.sql, row.domain, [row.before, row.after, row.found])
    const [before, after] = [zoneOf(row.before), zoneOf(row.after)]
    const delta = row.delta
      ? (JSON.parse(String(inflateRawSync(row.delta))) as Delta) // `endChanges` wrote it.
      : differenceOf(before, after)
    return { before, after, ...delta, ...(row.found && { found: zoneOf(row.found) }) }
  }

  /** Newest first, with `sentOnly` by when they were sent. `next`: the `after` of the next page, if there is one. */
  async list(
    filter: ChangeFilter,
    { page, page_size, after }: { page: number; page_size: number; after?: number | undefined },
  ) {
    const count = await this.sql.get<{ total: number }>(sql`
      select count(*) as total from ${changes} ${conditionOf(filter)}`)
    const offset = after === undefined ? (page - 1) * page_size : 0
    const [key, order] = filter.sentOnly ? [sql`sent_at, id`, sql`sent_at desc, id desc`] : [sql`id`, sql`id desc`]
    const follows = after === undefined ? [] : [sql`(${key}) < (select ${key} from ${changes} where id = ${after})`]
    const rows = await this.sql.all<ChangeRow>(sql`select ${listedColumns} from ${changes}
      ${conditionOf(filter, follows)} order by ${order} limit ${page_size + 1} offset ${offset}`)
    const shown = rows.slice(0, page_size)
    return {
      changes: shown.map(toStoredChange),
      total: count?.total ?? 0,
      next: rows.length > page_size ? shown.at(-1)?.id : undefined,
    }
  }
}

/** The sends of a domain that a batch has to know, newest first. */
function readSends(database: SqlTransaction, domain: string): Promise<SendRow[]> {
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
