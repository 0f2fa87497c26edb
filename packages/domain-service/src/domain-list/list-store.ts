import { name, type Sql, sql } from '@domains-and-files/persistence'
import type { DomainEntry } from '../registrar/responses.ts'
import { recordDomainEvents } from './domain-watch.ts'

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
