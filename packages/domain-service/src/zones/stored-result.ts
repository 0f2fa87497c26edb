import { toRecord, type Zone } from '../dns/record.ts'
import type { Ledger, Snapshot, StoredChange } from '../ledger/ledger.ts'
import type { WriteResult } from './zone-write.ts'

/** The result of a confirmed change, as the ledger has it. `found`: the zone that its send left, if that is known. */
export async function readResult(
  ledger: Ledger,
  { id, domain, warnings, verified }: StoredChange,
  found?: Snapshot,
): Promise<WriteResult> {
  const zones = await ledger.zonesOf(id)
  if (!zones) throw new Error(`change ${id} has no zones`)
  const zoneOf = (snapshot: Snapshot): Zone => ({ domain, usesRegistrarDns: true, ...snapshot })
  return {
    before: zoneOf(zones.before),
    zone: zoneOf(found ?? zones.after),
    added: zones.added.map((row) => toRecord(row, domain)),
    removed: zones.removed.map((row) => toRecord(row, domain)),
    kept: zones.after.rows.length - zones.added.length,
    warnings,
    verified,
  }
}
