import { appendEvents, type NewEvent } from '@domains-and-files/events'
import { forUpdate, name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { DomainEntry } from '../registrar/responses.ts'

/** One reading of the whole list, page by page. */
export interface ListPass {
  /** Undefined for a pass that is not stored, so that it is only in memory. */
  id?: number | undefined
  startedAt: number
  completedAt?: number | null | undefined
  /** The number of domains, according to the latest page. */
  total?: number | undefined
  /** Domains were added or removed between two pages, or a page lacked some, so one may be missing. */
  hasChanged: boolean
  pages: DomainEntry[][]
}

export interface StoredPasses {
  complete: ListPass | undefined
  partial: ListPass | undefined
}

const passes = name('domain_list_passes')
const pages = name('domain_list_pages')

type PassRow = Omit<ListPass, 'hasChanged' | 'pages'> & { hasChanged: number }

/** The latest complete list of one account, and the progress of the next. Lists of other accounts stay. */
export class DomainListStore {
  readonly #sql: Sql
  readonly account: string

  constructor(database: Sql, account: string) {
    this.#sql = database
    this.account = account
  }

  async load(): Promise<StoredPasses> {
    const [rows, entries] = await this.#sql.snapshot(async (snapshot) => [
      await snapshot.all<PassRow>(sql`select id, started_at as "startedAt", completed_at as "completedAt", total,
          has_changed as "hasChanged" from ${passes} where account = ${this.account} order by id`),
      await snapshot.all<{ pass: number; entries: string }>(sql`select pass, entries from ${pages}
        where pass in (select id from ${passes} where account = ${this.account}) order by pass, page`),
    ])
    const stored = rows.map(
      (row): ListPass => ({
        ...row,
        hasChanged: row.hasChanged === 1,
        // Written by `addPage` alone.
        pages: entries.filter(({ pass }) => pass === row.id).map((page) => JSON.parse(page.entries) as DomainEntry[]),
      }),
    )
    return {
      complete: stored.findLast(({ completedAt }) => completedAt),
      partial: stored.findLast(({ completedAt }) => !completedAt),
    }
  }

  /**
   * Stores the last page of a pass, and the pass with it; when it is complete, deletes earlier ones, except the one that
   * the next events are compared with.
   * @returns its id.
   */
  addPage(pass: ListPass): Promise<number> {
    const { startedAt, completedAt, total, hasChanged, pages: read } = pass
    return this.#sql.transaction(async (transaction) => {
      const begin = sql`insert into ${passes} (account, started_at) values (${this.account}, ${startedAt}) returning id`
      const id = pass.id ?? (await transaction.get<{ id: number }>(begin))?.id ?? 0
      await transaction.run(sql`insert into ${pages} (pass, page, entries)
        values (${id}, ${read.length}, ${JSON.stringify(read.at(-1))})`)
      await transaction.run(sql`update ${passes} set total = ${total}, has_changed = ${hasChanged},
        completed_at = ${completedAt} where id = ${id}`)
      if (completedAt)
        await transaction.run(sql`delete from ${passes}
          where id < ${id} and account = ${this.account} and told_at is null`)
      return id
    })
  }

  /**
   * Records events about domains that were added, removed or expire soon: compares the last complete list, now, with the
   * one before, at its time. Makes no calls. Ignores a list that changed between two pages, since it may miss domains.
   * Domains of the first list are not new. Replicas can call it concurrently.
   */
  async recordEvents(nowMs: number): Promise<void> {
    await this.#sql.transaction(async (transaction) => {
      // The lock keeps other replicas from recording the same events.
      const rows = await transaction.all<{ id: number; told_at: number | null }>(sql`
        select id, told_at from ${passes} where account = ${this.account} and completed_at is not null
          and has_changed = 0 order by id desc ${forUpdate}`)
      const [latest] = rows
      if (!latest) return
      const told = rows.find((row) => row.told_at !== null)
      const entries = await readEntries(transaction, latest.id)
      const known = told && (await readEntries(transaction, told.id))
      const toldAt = told?.told_at ?? nowMs
      await transaction.run(sql`update ${passes} set told_at = ${Math.max(nowMs, toldAt)} where id = ${latest.id}`)
      await transaction.run(sql`delete from ${passes} where account = ${this.account} and id < ${latest.id}`)
      await appendEvents(transaction, compare(entries, known, { nowMs, toldAt }))
    })
  }
}

export const domainEvents = ['domain.added', 'domain.removed', 'domain.expiring'] as const

/** The data of these events: the domain, and for `domain.expiring` the days that are left, in days of UTC. */
export interface DomainEventData {
  domain: DomainEntry
  days_left?: number
}

async function readEntries(transaction: SqlTransaction, pass: number) {
  const rows = await transaction.all<{ entries: string }>(sql`
    select entries from ${pages} where pass = ${pass} order by page`)
  // Written by `addPage` alone. A domain added between two pages moves another one to a second page.
  const entries = rows.flatMap((row) => JSON.parse(row.entries) as DomainEntry[])
  return new Map(entries.map((entry) => [entry.name, entry]))
}

type Entries = ReadonlyMap<string, DomainEntry>

function compare(
  entries: Entries,
  known: Entries | undefined,
  { nowMs, toldAt }: { nowMs: number; toldAt: number },
): NewEvent[] {
  const event = (type: (typeof domainEvents)[number], data: DomainEventData) => ({ type, data })
  const present = [...entries.values()].flatMap((domain) => {
    const before = known?.get(domain.name)
    const { expires_on: date } = domain
    const isDue = thresholdOf(date, nowMs) < (before?.expires_on === date ? thresholdOf(date, toldAt) : Infinity)
    return [
      ...(known && !before ? [event('domain.added', { domain })] : []),
      ...(isDue ? [event('domain.expiring', { domain, days_left: daysUntil(date, nowMs) })] : []),
    ]
  })
  const gone = [...(known?.values() ?? [])].filter(({ name }) => !entries.has(name))
  return [...present, ...gone.map((domain) => event('domain.removed', { domain }))]
}

const dayMs = 86_400_000

/** The smallest threshold of days before its expiry that the domain has reached; Infinity for none. */
function thresholdOf(date: string | null, atMs: number): number {
  const left = daysUntil(date, atMs)
  return left < 0 ? Infinity : ([1, 3, 7, 14, 30, 60].find((days) => left <= days) ?? Infinity)
}

/** Whole days of UTC; NaN where the date is unknown. */
const daysUntil = (date: string | null, atMs: number) =>
  Math.round(Date.parse(date ?? '') / dayMs) - Math.floor(atMs / dayMs)
