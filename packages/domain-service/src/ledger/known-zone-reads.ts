import {
  forUpdate,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import type { Zone } from '../dns/record.ts'
import { getZones } from './zone-snapshots.ts'

const knownZones = name('known_zones')

export interface KnownRow {
  domain: string
  zone: string
  read_at: number
  pending: string
  touched: string
  now: number
}

/** When each domain was last seen, and whether a difference waits for a second read; milliseconds since 1970. */
export type Sightings = ReadonlyMap<string, { readAt: number; isPending: boolean }>

/** Reads the known zones of the ledger, without a call to the registrar. */
export class KnownZoneReads {
  protected readonly sql: Sql

  constructor(database: Sql) {
    this.sql = database
  }

  /** The zone as it was seen last, with our own changes since. */
  async find(domain: string): Promise<Zone | undefined> {
    const row = await findKnown(this.sql, domain, sql``)
    if (!row) return undefined
    return { domain, usesRegistrarDns: true, ...(await getZones(this.sql, [row.zone]))(row.zone) }
  }

  async sightings(): Promise<Sightings> {
    const rows = await this.sql.all<{ domain: string; readAt: number; pending: string }>(
      sql`select domain, read_at as "readAt", substr(pending, 1, 3) as pending from ${knownZones}`,
    )
    return new Map(
      rows.map(({ domain, readAt, pending }) => [domain, { readAt, isPending: pending !== '{}' }]),
    )
  }

  /** Zones, and when they were last read (milliseconds since 1970); few at once: there may be 10,000 of 400 KB. */
  async *select(
    isWanted: (domain: string) => boolean,
  ): AsyncGenerator<{ zone: Zone; readAt: number }> {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const rows: Pick<KnownRow, 'domain' | 'zone' | 'read_at'>[] = await this.sql.all(
        sql`select domain, zone, read_at from ${knownZones} where domain > ${last} order by domain limit 50`,
      )
      const wanted = rows.filter(({ domain }) => isWanted(domain))
      const digests = wanted.map(({ zone }) => zone)
      const zoneOf = await getZones(this.sql, digests)
      for (const { domain, zone, read_at: readAt } of wanted)
        yield { zone: { domain, usesRegistrarDns: true, ...zoneOf(zone) }, readAt }
      last = rows.at(-1)?.domain
    }
  }
}

/** Locks the row, unless `lock` is empty. */
export const findKnown = (database: SqlTransaction, domain: string, lock: unknown = forUpdate) =>
  database.get<KnownRow>(sql`select domain, zone, read_at, pending, touched, ${now} as now from ${knownZones}
    where domain = ${domain} ${lock}`)
