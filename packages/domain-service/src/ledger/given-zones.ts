import { slices } from '@domains-and-files/http'
import { forUpdate, join, name, now, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { RecordInput } from '../dns/record.ts'

/** A zone as a client knows it: only the records that its token may write. */
export interface ClientZone {
  emailType?: string | undefined
  records: ClientRecord[]
}

export interface ClientRecord extends RecordInput {
  /** The name as the client wrote it, where that differs: clients find their records by it. */
  spelling?: string
}

/** A zone that a client read, or that it submitted as a list. */
export interface GivenZone {
  id: number
  /** Of submitted zones: `unfinished`: maybe not written. `unanswered`: written, client not told. `done`: client told. */
  kind: 'read' | 'unfinished' | 'unanswered' | 'done'
  /** How many client processes may still submit a list made from it; less than 0: it came again, and was unclear. */
  copies: number
  zone: ClientZone
  /** Of a read: the zone without the unfinished writes that it shows. Of a list: the zone that it was compared with. */
  base?: ClientZone | undefined
}

/** An API token and a domain. */
export interface GivenTo {
  token: string
  domain: string
}

/** What a submitted zone is compared with. */
export interface Comparison {
  used: GivenZone
  base: ClientZone
  /** `used` is this list, which others came after: it may come again, whether its client gets an answer or not. */
  mayRepeat: boolean
  /** A record of it is gone since: a repeat must not bring it back, but a client that goes back to the list wants it. */
  isUnclear: boolean
}

interface ZoneRow {
  id: number
  is_submitted: number
  copies: number
  zone: string
  base: string | null
}

const zones = name('given_zones')
const keptMs = 600_000
/** lego waits up to an hour before it removes its challenge, which it finds by its own spelling of the name. */
const spelledMs = 2 * 3_600_000
const maxOfToken = 200
// Values of `is_submitted`; 0 for a read.
const [running, stopped, unanswered, done] = [1, 2, 3, 4]
const kinds = ['read', 'unfinished', 'unfinished', 'unanswered', 'done'] as const

/** Zones that API tokens read or submitted: kept ten minutes, their spellings of names two hours; shared by replicas. */
export class GivenZones {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  /** A client was given this zone. */
  async add(to: GivenTo, { zone, base }: Pick<GivenZone, 'zone' | 'base'>): Promise<void> {
    await this.#sql.run(sql`delete from ${zones} where at <= ${now} - ${keptMs} and not (${isSpelled})`)
    const isOwn = isOf(to)
    const text = JSON.stringify(zone)
    await this.#sql.transaction(async (transaction) => {
      // Processes that share a token may read the same zone: each read is a copy, and each list uses up one.
      const equal = await transaction.all<{ copies: number }>(sql`
        delete from ${zones} where ${isOwn} and is_submitted = 0 and zone = ${text} returning copies`)
      const copies = equal.reduce((sum, row) => sum + row.copies, 1)
      await insert(transaction, to, { kind: 'read', zone, base, copies })
      await transaction.run(sql`delete from ${zones} where ${isOwn} and id not in
        (select id from ${zones} where ${isOwn} order by id desc limit ${maxOfToken})`)
    })
  }

  /** Marks unfinished writes as stopped: their process has ended, so only a repeated list carries them out. */
  async forgetWrites(): Promise<void> {
    await this.#sql.run(sql`update ${zones} set is_submitted = ${stopped} where is_submitted = ${running}`)
  }

  /** All lists since the oldest one whose write is running, and lists of the last two hours with their own spellings. */
  async submitted(to: GivenTo): Promise<GivenZone[]> {
    const isList = sql`${isOf(to)} and ${isSince(keptMs)} and is_submitted > 0`
    const rows = await this.#sql.all<ZoneRow>(sql`
      select id, is_submitted, copies, zone, case when ${isSince(keptMs)} and is_submitted = ${running} and copies > 0 then base end as base
      from ${zones} where ${isOf(to)} and (${isSpelled} or ${isList}
        and id >= (select min(id) from ${zones} where ${isList} and is_submitted = ${running})) order by id`)
    return rows.map(toGivenZone)
  }

  /**
   * Stores a submitted zone, and uses up a copy of the given zone that it was made from. The first time,
   * an unclear one is not stored, since its client is told to read the zone again.
   * @param choose gets the given zones, oldest first.
   * @returns undefined where `choose` does; otherwise the id of the submitted zone, for `confirm` or `giveBack`.
   */
  replace(
    to: GivenTo,
    submitted: ClientZone,
    choose: (given: GivenZone[]) => Comparison | undefined,
  ): Promise<(Comparison & { id: number }) | undefined> {
    return this.#sql.transaction(async (transaction) => {
      // Locks the rows, so that the next statement sees what another request of this token has replaced.
      await transaction.all(sql`select id from ${zones} where ${isOf(to)} order by id ${forUpdate}`)
      const rows = await transaction.all<ZoneRow>(sql`
        select id, is_submitted, copies, zone, base from ${zones}
          where ${isOf(to)} and ${isSince(keptMs)} order by id`)
      const given: GivenZone[] = []
      const nextSlice = slices()
      for (const row of rows) {
        await nextSlice()
        given.push(toGivenZone(row))
      }
      const chosen = choose(given)
      if (!chosen) return undefined
      const { used, base, isUnclear } = chosen
      const copies = isUnclear ? sql`-1` : sql`copies - 1`
      await transaction.run(sql`update ${zones} set copies = ${copies} where id = ${used.id}`)
      if (isUnclear) return { id: used.id, ...chosen }
      const id = await insert(transaction, to, { kind: 'unfinished', zone: submitted, base })
      return { id, ...chosen }
    })
  }

  /** Remembers a submitted zone that was compared with a zone that the client was not given. */
  submit(to: GivenTo, submitted: ClientZone, base: ClientZone): Promise<number> {
    return insert(this.#sql, to, { kind: 'unfinished', zone: submitted, base })
  }

  /** Marks a submitted zone as written. Unless its client still waits, the same list counts as a repeat. */
  async confirm(id: number, isAwaited: boolean): Promise<void> {
    const state = isAwaited ? done : unanswered
    await this.#sql.run(sql`update ${zones} set is_submitted = ${state} where id = ${id}`)
  }

  /** Deletes a submitted zone whose write was refused, and gives `used` its copy back. */
  async giveBack(id: number, used: GivenZone | undefined): Promise<void> {
    await this.#sql.transaction(async (transaction) => {
      await transaction.run(sql`delete from ${zones} where id = ${id}`)
      if (used) await transaction.run(sql`update ${zones} set copies = copies + 1 where id = ${used.id}`)
    })
  }
}

const isSince = (ms: number) => sql`at > ${now} - ${ms}`
const isSpelled = sql`zone like '%"spelling":%' and ${isSince(spelledMs)}`

const isOf = ({ token, domain }: GivenTo) => sql`token = ${token} and domain = ${domain}`

async function insert(
  database: SqlTransaction,
  { token, domain }: GivenTo,
  { kind, zone, base, copies = 1 }: Omit<GivenZone, 'id' | 'copies'> & { copies?: number },
): Promise<number> {
  const texts = [JSON.stringify(zone), base ? JSON.stringify(base) : null]
  const row = await database.get<{ id: number }>(sql`
    insert into ${zones} (token, domain, at, is_submitted, copies, zone, base)
      values (${token}, ${domain}, ${now}, ${kind === 'read' ? 0 : running}, ${copies}, ${join(texts)}) returning id`)
  if (!row) throw new Error('a given zone was not stored')
  return row.id
}

// The texts are JSON that this class wrote.
const toGivenZone = ({ id, is_submitted, copies, zone, base }: ZoneRow): GivenZone => ({
  id,
  kind: kinds[is_submitted] ?? 'read',
  copies,
  zone: JSON.parse(zone),
  base: base === null ? undefined : JSON.parse(base),
})
