import { type Fault, validationFailed } from '@domains-and-files/http'
import { emailTypeConflict, tooManyRecords } from '../../errors.ts'
import { resolveEmailType } from '../email-type.ts'
import { subtract, type Zone } from '../record.ts'
import type { Candidate } from './candidate.ts'
import { findConflicts } from './record-conflicts.ts'

export const maxRecords = 150

/**
 * The zone of these rows and the email type that goes with them.
 * @throws {HttpError} validation_failed with all faults; else record_exists or record_conflict, too_many_records,
 * email_type_conflict.
 */
export function composeZone(
  zone: Zone,
  candidates: Candidate[],
  requested: { emailType?: string | undefined } = {},
): Zone {
  const rows = candidates.map(({ row }) => row)
  const next = { ...zone, rows }
  const conflicts = findConflicts(candidates, zone.domain)
  const faults = [...candidates.flatMap((candidate) => candidate.faults), ...conflicts.faults]
  if (
    faults.length === 0 &&
    isEqual(next, zone) &&
    (requested.emailType ?? zone.emailType) === zone.emailType
  )
    return next

  const resolved = resolveEmailType({ requested: requested.emailType, before: zone, rows })
  if ('fault' in resolved) faults.push({ path: '/email_type', message: resolved.fault })
  if (faults.length > 0) throw validationFailed(distinct(faults))
  if (conflicts.error) throw conflicts.error
  if (rows.length > maxRecords && rows.length > zone.rows.length) throw tooManyRecords()
  if ('conflict' in resolved) throw emailTypeConflict(resolved.conflict)
  return { ...next, ...resolved }
}

const isEqual = (a: Zone, b: Zone) =>
  a.rows.length === b.rows.length && subtract(a.rows, b.rows, b.domain).length === 0

// Every value of an RRset has the same name and TTL: one fault is enough.
const distinct = (faults: Fault[]) => [
  ...new Map(faults.map((fault) => [JSON.stringify(fault), fault])).values(),
]
