import { appendEvents, type NewEvent } from '@domains-and-files/events'
import {
  forUpdate,
  join,
  list,
  name,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import type { DomainEntry } from '../registrar/responses.ts'

/** One reading of the whole list, page by page. */
export interface ListPass {
  /** Undefined while it could not be stored: it is kept in memory only. */
  id: number | undefined
  startedAt: number
  completedAt: number | undefined
  /** How many domains there are, as the latest page says. */
  total: number | undefined
  /** Domains came or went between two pages, so one may be missing. */
  hasChanged: boolean
  pages: DomainEntry[][]
}

export interface StoredPasses {
  complete: ListPass | undefined
  partial: ListPass | undefined
}

const passes = name('domain_list_passes')
const pages = name('domain_list_pages')

interface PassRow {
  id: number
  started_at: number
  completed_at: number | null
  total: number | null
}

/** The latest complete list of one account, and the progress of the next. Lists of other accounts stay. */
export class DomainListStore {
  readonly #sql: Sql
  readonly #account: string

  constructor(database: Sql, account: string) {
    this.#sql = database
    this.#account = account
  }

  async load(): Promise<StoredPasses> {
    const [rows, entries] = await this.#sql.snapshot(async (snapshot) => [
      await snapshot.all<PassRow>(sql`select id, started_at, completed_at, total from ${passes}
        where account = ${this.#account} order by id`),
      await snapshot.all<{ pass: number; entries: string }>(sql`select pass, entries from ${pages}
        where pass in (select id from ${passes} where account = ${this.#account}) order by pass, page`),
    ])
    const stored = rows.map(
      (row): ListPass => ({
        id: row.id,
        startedAt: row.started_at,
        completedAt: row.completed_at ?? undefined,
        total: row.total ?? undefined,
        hasChanged: false,
        // Written by `addPage` alone.
        pages: entries
          .filter(({ pass }) => pass === row.id)
          .map((page) => JSON.parse(page.entries) as DomainEntry[]),
      }),
    )
    return {
      complete: stored.findLast((pass) => pass.completedAt !== undefined),
      partial: stored.findLast((pass) => pass.completedAt === undefined),
    }
  }

  async begin(startedAt: number): Promise<number> {
    const row = await this.#sql.transaction((transaction) =>
      transaction.get<{ id: number }>(sql`insert into ${passes} (account, started_at)
        values (${this.#account}, ${startedAt}) returning id`),
    )
    return row?.id ?? 0
  }

  async addPage(pass: number, page: number, entries: DomainEntry[], total: number): Promise<void> {
    await this.#sql.transaction(async (transaction) => {
      await transaction.run(sql`insert into ${pages} (pass, page, entries)
        values (${pass}, ${page}, ${JSON.stringify(entries)})`)
      await transaction.run(sql`update ${passes} set total = ${total} where id = ${pass}`)
    })
  }

  /** Records what the last complete list says of domains that came, went or expire soon. */
  recordEvents(nowMs: number): Promise<void> {
    return recordDomainEvents(this.#sql, { account: this.#account, nowMs })
  }

  /** Completes a pass; earlier ones are dropped. */
  async complete(pass: number, completedAt: number): Promise<void> {
    await this.#sql.transaction(async (transaction) => {
      await transaction.run(
        sql`update ${passes} set completed_at = ${completedAt} where id = ${pass}`,
      )
      await transaction.run(
        sql`delete from ${passes} where id < ${pass} and account = ${this.#account}`,
      )
    })
  }
}

const listed = name('listed_domains')

const dayMs = 86_400_000
/** Days before a domain expires, in ascending order. */
const thresholds = [1, 3, 7, 14, 30, 60]

export const domainEvents = ['domain.added', 'domain.removed', 'domain.expiring'] as const

/** What these events store: the domain, and for `domain.expiring` the days that are left, in days of UTC. */
export interface DomainTold {
  domain: DomainEntry
  days_left?: number
}

/** What was known of a domain at the last look: its entry, and the threshold that an event was recorded for. */
interface ListedDomain {
  name: string
  entry: string
  told: number | null
}

/**
 * Records events about domains that came, went or expire soon, from the last complete list; without calls. Each threshold is
 * recorded once for an expiry date. Domains of the first list have not come. Replicas can call it at once.
 */
export async function recordDomainEvents(
  database: Sql,
  { account, nowMs }: { account: string; nowMs: number },
): Promise<void> {
  await database.transaction(async (transaction) => {
    // The lock keeps other replicas from recording the same.
    const pass = await transaction.get<{ id: number }>(sql`select id from ${passes}
      where account = ${account} and completed_at is not null order by id desc limit 1 ${forUpdate}`)
    if (!pass) return
    const entries = await readEntries(transaction, pass.id)
    const known = await transaction.all<ListedDomain>(
      sql`select name, entry, told from ${listed} where account = ${account}`,
    )
    const { events, changed, gone } = compare(entries, known, nowMs)
    await transaction.run(
      sql`delete from ${listed} where account = ${account} and name in (${list(gone)})`,
    )
    for (let at = 0; at < changed.length; at += 1_000) {
      const rows = changed.slice(at, at + 1_000)
      await transaction.run(sql`insert into ${listed} (account, name, entry, told)
        values ${join(rows.map((row) => sql`(${account}, ${row.name}, ${row.entry}, cast(${row.told} as bigint))`))}
        on conflict (account, name) do update set entry = excluded.entry, told = excluded.told`)
    }
    await appendEvents(transaction, events)
  })
}

async function readEntries(transaction: SqlTransaction, pass: number): Promise<DomainEntry[]> {
  const rows = await transaction.all<{ entries: string }>(
    sql`select entries from ${pages} where pass = ${pass} order by page`,
  )
  // The store of the list wrote them.
  const entries = rows.flatMap((row) => JSON.parse(row.entries) as DomainEntry[])
  return [...new Map(entries.map((entry) => [entry.name, entry])).values()]
}

function compare(entries: DomainEntry[], known: ListedDomain[], nowMs: number) {
  const knownOf = new Map(known.map((each) => [each.name, each]))
  const events: NewEvent[] = []
  const record = (type: (typeof domainEvents)[number], data: DomainTold) =>
    events.push({ type, data })
  const changed: ListedDomain[] = []
  for (const domain of entries) {
    const before = knownOf.get(domain.name)
    if (!before && known.length > 0) record('domain.added', { domain })
    const isSameDate = before && JSON.parse(before.entry).expires_on === domain.expires_on
    const daysLeft = daysUntil(domain.expires_on, nowMs)
    const reached = daysLeft < 0 ? undefined : thresholds.find((days) => daysLeft <= days)
    const told = isSameDate ? before.told : null
    const isDue = reached !== undefined && (told === null || reached < told)
    if (isDue) record('domain.expiring', { domain, days_left: daysLeft })
    const row = { name: domain.name, entry: JSON.stringify(domain), told: isDue ? reached : told }
    if (row.entry !== before?.entry || row.told !== before.told) changed.push(row)
  }
  const present = new Set(entries.map((entry) => entry.name))
  const gone = known.filter((each) => !present.has(each.name))
  for (const { entry } of gone) record('domain.removed', { domain: JSON.parse(entry) })
  return { events, changed, gone: gone.map((each) => each.name) }
}

/** Whole days of UTC; NaN where the date is unknown. */
const daysUntil = (date: string | null, nowMs: number) =>
  Math.round(Date.parse(date ?? '') / dayMs) - Math.floor(nowMs / dayMs)
