import type { Database } from 'better-sqlite3'
import type { HostRecord, Row, Zone } from '../dns/record.ts'

/** A zone as it is kept: rows as the registrar gave them, so that they can go back so. */
export interface Snapshot {
  emailType: string | undefined
  rows: Row[]
}

export interface NewHistoryEntry {
  domain: string
  by: string
  requestId: string
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  before: Zone
  after: Zone
}

export interface HistoryEntry {
  id: number
  at: string
  by: string
  requestId: string
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  before: Snapshot
  after: Snapshot
}

interface Stored {
  id: number
  at: string
  by: string
  request_id: string
  added: string
  removed: string
  kept: number
  before: string
  after: string
}

/** Who changed what, and the whole zone before and after: appended to, never altered. */
export class ChangeHistory {
  readonly #append
  readonly #page
  readonly #count
  readonly #find

  constructor(database: Database) {
    const insert = database.prepare<[Omit<Stored, 'id'> & { domain: string }]>(
      `insert into changes (domain, at, by, request_id, added, removed, kept, before, after)
       values (:domain, :at, :by, :request_id, :added, :removed, :kept, :before, :after)`,
    )
    this.#append = database.transaction((entries: NewHistoryEntry[]) => {
      for (const entry of entries) insert.run(toStored(entry))
    })
    this.#page = database.prepare<[string, number, number], Stored>(
      'select * from changes where domain = ? order by id desc limit ? offset ?',
    )
    this.#count = database
      .prepare<[string], number>('select count(*) from changes where domain = ?')
      .pluck()
    this.#find = database.prepare<[string, number], Stored>(
      'select * from changes where domain = ? and id = ?',
    )
  }

  /** All of them or none; durable when it returns. */
  append(entries: NewHistoryEntry[]) {
    this.#append(entries)
  }

  /** Newest first. */
  list(
    domain: string,
    page: { page: number; page_size: number },
  ): { changes: HistoryEntry[]; total: number } {
    const offset = (page.page - 1) * page.page_size
    return {
      changes: this.#page.all(domain, page.page_size, offset).map(toChange),
      total: this.#count.get(domain) ?? 0,
    }
  }

  find(domain: string, id: number): HistoryEntry | undefined {
    const stored = this.#find.get(domain, id)
    return stored && toChange(stored)
  }
}

const toStored = (entry: NewHistoryEntry) => ({
  domain: entry.domain,
  at: new Date().toISOString(),
  by: entry.by,
  request_id: entry.requestId,
  added: JSON.stringify(entry.added),
  removed: JSON.stringify(entry.removed),
  kept: entry.kept,
  before: JSON.stringify(snapshot(entry.before)),
  after: JSON.stringify(snapshot(entry.after)),
})

const snapshot = ({ emailType, rows }: Zone): Snapshot => ({ emailType, rows })

// The texts are ours alone: what `toStored` wrote.
const toChange = (stored: Stored): HistoryEntry => ({
  id: stored.id,
  at: stored.at,
  by: stored.by,
  requestId: stored.request_id,
  added: JSON.parse(stored.added) as HostRecord[],
  removed: JSON.parse(stored.removed) as HostRecord[],
  kept: stored.kept,
  before: JSON.parse(stored.before) as Snapshot,
  after: JSON.parse(stored.after) as Snapshot,
})
