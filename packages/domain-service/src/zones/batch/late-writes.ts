import type { Zone } from '../../dns/record.ts'
import type { Intent, LateSend, Ledger } from '../../ledger/ledger.ts'
import { isSame } from './zone-comparison.ts'

/** The outdated given-up send that the registrar carried out late, if the zone is exactly as that send leaves it. */
export async function findLateWrite(ledger: Ledger, zone: Zone): Promise<LateSend | undefined> {
  const sends = await ledger.lateSends(zone.domain)
  return sends.find((send) => isSame(zone, send.zone) && !isSame(zone, send.confirmed))
}

/** The change by which the service itself puts the confirmed zone back. */
export const repairIntent = (
  zone: Zone,
  { confirmed }: LateSend,
  id: number | undefined,
): Intent => ({
  id,
  request: {
    domain: zone.domain,
    by: 'domain-service',
    requestId: 'late-write',
    reason: 'late_write',
    edit: { kind: 'restore', rows: confirmed.rows, emailType: confirmed.emailType },
    force: false,
  },
  before: zone,
  after: { ...zone, ...confirmed },
  warnings: [],
})
