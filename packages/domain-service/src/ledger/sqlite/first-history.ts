import type { Database } from 'better-sqlite3'
import type { HostRecord } from '../../dns/record.ts'
import { summarize } from '../change-summary.ts'
import type { Snapshot } from '../ledger.ts'
import { compress, digestOf, encodeSnapshot } from '../snapshot-encoding.ts'

/** SQL functions by which a migration converts the history of version 1, which stored whole zones in each entry. */
export function registerConversions(database: Database) {
  const options = { deterministic: true }
  database.function('zone_digest', options, (zone) => digestOf(convert(zone)))
  database.function('zone_packed', options, (zone) => compress(convert(zone)))
  database.function('change_summary', options, (added, removed, kept) =>
    JSON.stringify(summarize(recordsOf(added), recordsOf(removed), Number(kept))),
  )
}

// Version 1 wrote these texts itself, so their shapes are known.
const convert = (zone: unknown) => encodeSnapshot(JSON.parse(String(zone)) as Snapshot)
const recordsOf = (text: unknown) => JSON.parse(String(text)) as HostRecord[]
