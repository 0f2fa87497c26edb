import type { Database } from 'better-sqlite3'
import type { DomainEntry } from '../registrar/responses.ts'
import type { DomainListStore } from './list-store.ts'

interface PassRow {
  id: number
  startedAt: number
  completedAt: number | null
  total: number | null
}

/** The list of domains in the service's own SQLite database. */
export class SqliteListStore implements DomainListStore {
  readonly #account: string
  readonly #statements

  /** `account` names the registrar account: lists of another one are dropped. */
  constructor(database: Database, account: string) {
    this.#account = account
    this.#statements = {
      transaction: (run: () => void) => database.transaction(run)(),
      dropOthers: database.prepare<[string]>('delete from domain_list_passes where account <> ?'),
      dropOrphans: database.prepare(
        'delete from domain_list_pages where pass not in (select id from domain_list_passes)',
      ),
      dropOlder: database.prepare<[number]>('delete from domain_list_passes where id < ?'),
      passes: database.prepare<[], PassRow>(
        `select id, started_at as startedAt, completed_at as completedAt, total
         from domain_list_passes order by id`,
      ),
      pages: database
        .prepare<[number], string>(
          'select entries from domain_list_pages where pass = ? order by page',
        )
        .pluck(),
      begin: database.prepare<[string, number]>(
        'insert into domain_list_passes (account, started_at) values (?, ?)',
      ),
      setTotal: database.prepare<[number, number]>(
        'update domain_list_passes set total = ? where id = ?',
      ),
      addPage: database.prepare<[number, number, string]>(
        'insert into domain_list_pages (pass, page, entries) values (?, ?, ?)',
      ),
      complete: database.prepare<[number, number]>(
        'update domain_list_passes set completed_at = ? where id = ?',
      ),
    }
  }

  async load() {
    this.#statements.dropOthers.run(this.#account)
    this.#statements.dropOrphans.run()
    const passes = this.#statements.passes.all().map((row) => ({
      id: row.id,
      startedAt: row.startedAt,
      completedAt: row.completedAt ?? undefined,
      total: row.total ?? undefined,
      hasChanged: false,
      // Written by `addPage` alone.
      pages: this.#statements.pages.all(row.id).map((text) => JSON.parse(text) as DomainEntry[]),
    }))
    return {
      complete: passes.findLast((pass) => pass.completedAt !== undefined),
      partial: passes.findLast((pass) => pass.completedAt === undefined),
    }
  }

  async begin(startedAt: number) {
    return Number(this.#statements.begin.run(this.#account, startedAt).lastInsertRowid)
  }

  async addPage(pass: number, page: number, entries: DomainEntry[], total: number) {
    this.#statements.transaction(() => {
      this.#statements.addPage.run(pass, page, JSON.stringify(entries))
      this.#statements.setTotal.run(total, pass)
    })
  }

  async complete(pass: number, completedAt: number) {
    this.#statements.transaction(() => {
      this.#statements.complete.run(completedAt, pass)
      this.#statements.dropOlder.run(pass)
      this.#statements.dropOrphans.run()
    })
  }
}
