import type { Postgres } from '@domains-and-files/persistence'
import type { ChallengeStore, StoredChallenge } from '../challenge-store.ts'
import { recorded } from './storage-errors.ts'

/** The ACME challenges of all replicas. */
export class PostgresChallengeStore implements ChallengeStore {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async add({ domain, name, value, createdAt }: StoredChallenge & { createdAt: number }) {
    await recorded(() =>
      this.#postgres.query(
        `insert into domain_service.acme_challenges (domain, name, value, created_at) values ($1, $2, $3, $4)
         on conflict (domain, name, value) do update set created_at = excluded.created_at`,
        [domain, name, value, createdAt],
      ),
    )
  }

  async remove(challenges: StoredChallenge[]) {
    await this.#postgres.query(
      `delete from domain_service.acme_challenges where (domain, name, value) in
         (select * from unnest($1::text[], $2::text[], $3::text[]))`,
      [
        challenges.map(({ domain }) => domain),
        challenges.map(({ name }) => name),
        challenges.map(({ value }) => value),
      ],
    )
  }

  list({ domain, name }: { domain: string; name: string }) {
    return this.#postgres.query<StoredChallenge>(
      `select domain, name, value from domain_service.acme_challenges where domain = $1 and name = $2
       order by created_at, id`,
      [domain, name],
    )
  }

  before(time: number) {
    return this.#postgres.query<StoredChallenge>(
      'select domain, name, value from domain_service.acme_challenges where created_at < $1 limit 1000',
      [time],
    )
  }
}
