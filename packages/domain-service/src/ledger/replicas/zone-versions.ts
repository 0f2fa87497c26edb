import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'

const versions = name('zone_versions')

/** Raises the version of a domain's zone: what replicas have cached of it is outdated once this commits. */
export async function increaseVersion(
  transaction: SqlTransaction,
  domain: string,
): Promise<number> {
  const row = await transaction.get<{ version: number }>(sql`
    insert into ${versions} as known (domain, version) values (${domain}, 1)
    on conflict (domain) do update set version = known.version + 1 returning version`)
  return row?.version ?? 0
}

/** Which version of each domain's zone a cache of this process has. Each send raises it before and after. */
export class ZoneVersions {
  readonly #sql: Sql
  readonly #seen = new Map<string, number>()
  /** The version that this process raised before its last send. */
  readonly #started = new Map<string, number>()
  /** Domains whose cached zone this process put at the end of that send. */
  readonly #put = new Set<string>()

  constructor(database: Sql) {
    this.#sql = database
  }

  /** Whether a zone that was cached since the last call may still be served. @throws where the database fails. */
  async isCurrent(domain: string): Promise<boolean> {
    const row = await this.#sql.get<{ version: number }>(
      sql`select version from ${versions} where domain = ${domain}`,
    )
    const version = row?.version ?? 0
    if (version <= (this.#seen.get(domain) ?? 0)) return true
    this.#seen.set(domain, version)
    return false
  }

  recordPut(domain: string) {
    this.#put.add(domain)
  }

  recordDrop(domain: string) {
    this.#put.delete(domain)
  }

  recordStart(domain: string, version: number) {
    this.#started.set(domain, version)
  }

  /** What was put since the start is the zone of this version, unless another process has raised it between. */
  recordEnd(domain: string, version: number) {
    if (this.#put.has(domain) && this.#started.get(domain) === version - 1)
      this.#seen.set(domain, version)
  }
}
