import { isParking, type Row, subtract, toRecord, type Zone } from '../../dns/record.ts'

interface ZoneContent {
  emailType: string | undefined
  rows: Row[]
}

/**
 * Whether a zone is as it was sent, as a multiset of records, modulo what the registrar normalizes. An answer without
 * email type says nothing about it.
 */
export function isSame(found: Zone, wanted: ZoneContent): boolean {
  const { domain } = found
  // The registrar adds its parking records to an empty zone.
  const rows =
    wanted.rows.length === 0 ? found.rows.filter((row) => !isParking(row, domain)) : found.rows
  return (
    rows.length === wanted.rows.length &&
    subtract(rows, wanted.rows, domain).length === 0 &&
    isSameEmailType(found.emailType, wanted.emailType)
  )
}

const isSameEmailType = (found: string | undefined, wanted: string | undefined) =>
  found === undefined || wanted === undefined || found === wanted

/** One sentence for each way in which a zone differs from what was sent. */
export function describeDifference(found: Zone, wanted: Zone): string {
  const { domain } = wanted
  const missing = describe(subtract(wanted.rows, found.rows, domain), domain)
  const unexpected = describe(subtract(found.rows, wanted.rows, domain), domain)
  return [
    'The registrar accepted the change, but the zone differs from what was sent',
    missing && `missing: ${missing}`,
    unexpected && `unexpected: ${unexpected}`,
    !isSameEmailType(found.emailType, wanted.emailType) &&
      `email type ${found.emailType} instead of ${wanted.emailType}`,
  ]
    .filter(Boolean)
    .join('. ')
}

function describe(rows: Row[], domain: string): string {
  const records = rows.slice(0, 5).map((row) => {
    const { name, type, address, ttl, mx_pref } = toRecord(row, domain)
    const pref = mx_pref === undefined ? '' : `, mx_pref ${mx_pref}`
    return `${name} ${type} ${address.slice(0, 80)} (ttl ${ttl}${pref})`
  })
  return [...records, ...(rows.length > 5 ? [`${rows.length - 5} more`] : [])].join('; ')
}
