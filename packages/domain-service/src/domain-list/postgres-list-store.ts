import type { Postgres } from '@domains-and-files/persistence'
import type { DomainEntry } from '../registrar/responses.ts'
import type { DomainListStore, ListPass } from './list-store.ts'

interface PassRow {
  id: number
  started_at: number
  completed_at: number | null
  total: number | null
}

/** The list of domains of all replicas. Lists of other accounts are left to their replicas. */
export class PostgresListStore implements DomainListStore {
  readonly #postgres: Postgres
  readonly #account: string

  constructor(postgres: Postgres, account: string) {
    this.#postgres = postgres
    this.#account = account
  }

  async load() {
    const [passes, pages] = await this.#postgres.snapshot(async (transaction) => [
      await transaction.query<PassRow>(
        `select id, started_at, completed_at, total from domain_service.domain_list_passes
         where account = $1 order by id`,
        [this.#account],
      ),
      await transaction.query<{ pass: number; entries: string }>(
        `select pass, entries from domain_service.domain_list_pages
         where pass in (select id from domain_service.domain_list_passes where account = $1) order by pass, page`,
        [this.#account],
      ),
    ])
    const stored = passes.map(
      (row): ListPass => ({
        id: row.id,
        startedAt: row.started_at,
        completedAt: row.completed_at ?? undefined,
        total: row.total ?? undefined,
        hasChanged: false,
        // Written by `addPage` alone.
        pages: pages
          .filter(({ pass }) => pass === row.id)
          .map(({ entries }) => JSON.parse(entries) as DomainEntry[]),
      }),
    )
    return {
      complete: stored.findLast((pass) => pass.completedAt !== undefined),
      partial: stored.findLast((pass) => pass.completedAt === undefined),
    }
  }

  async begin(startedAt: number) {
    return this.#postgres.transaction(async (transaction) => {
      const [row] = await transaction.query<{ id: number }>(
        'insert into domain_service.domain_list_passes (account, started_at) values ($1, $2) returning id',
        [this.#account, startedAt],
      )
      return row?.id ?? 0
    })
  }

  async addPage(pass: number, page: number, entries: DomainEntry[], total: number) {
    await this.#postgres.transaction(async (transaction) => {
      await transaction.query(
        'insert into domain_service.domain_list_pages (pass, page, entries) values ($1, $2, $3)',
        [pass, page, JSON.stringify(entries)],
      )
      await transaction.query(
        'update domain_service.domain_list_passes set total = $2 where id = $1',
        [pass, total],
      )
    })
  }

  async complete(pass: number, completedAt: number) {
    await this.#postgres.transaction(async (transaction) => {
      await transaction.query(
        'update domain_service.domain_list_passes set completed_at = $2 where id = $1',
        [pass, completedAt],
      )
      await transaction.query(
        'delete from domain_service.domain_list_passes where id < $1 and account = $2',
        [pass, this.#account],
      )
    })
  }
}
