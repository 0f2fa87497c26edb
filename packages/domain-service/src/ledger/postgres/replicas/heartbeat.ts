import type { Postgres } from '@domains-and-files/persistence'

const beatMs = 2_000
/** A replica that has not been heard of for so long counts as dead. */
const aliveMs = 10_000
const forgetMs = 86_400_000

/** Tells the other replicas that this process lives, so that its clients' changes are carried out. */
export class Heartbeat {
  readonly #postgres: Postgres
  readonly #replica: string
  #timer: NodeJS.Timeout | undefined

  private constructor(postgres: Postgres, replica: string) {
    this.#postgres = postgres
    this.#replica = replica
  }

  static async start(postgres: Postgres, replica: string): Promise<Heartbeat> {
    const heartbeat = new Heartbeat(postgres, replica)
    await heartbeat.#beat()
    await postgres.query(
      'delete from domain_service.replicas where until < domain_service.now_ms() - $1',
      [forgetMs],
    )
    // The probe reports a database that is away.
    heartbeat.#timer = setInterval(() => heartbeat.#beat().catch(() => undefined), beatMs).unref()
    return heartbeat
  }

  /** The changes that its clients waited for have ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#postgres
      .query('delete from domain_service.replicas where id = $1', [this.#replica])
      .catch(() => undefined)
  }

  async #beat() {
    await this.#postgres.query(
      `insert into domain_service.replicas (id, until) values ($1, domain_service.now_ms() + $2)
       on conflict (id) do update set until = excluded.until`,
      [this.#replica, aliveMs],
    )
  }
}
