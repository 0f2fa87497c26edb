import { emailTypeConflict, revertConflict, tooManyRecords } from '../../errors.ts'
import { resolveEmailType } from '../email-type.ts'
import { keyOf, type Row, subtract, toRecord, type Zone } from '../record.ts'
import { differenceOf } from '../zone-delta.ts'
import { untouched } from './candidate.ts'
import { findConflicts, maxRecords } from './compose-zone.ts'
import type { RestoreEdit, RevertEdit } from './zone-edit.ts'

/** A former zone. The registrar accepted it once, so its records are not validated. */
export function restoreZone(zone: Zone, edit: RestoreEdit): Zone {
  const { emailType } = edit
  const { added, removed } = differenceOf(zone, { ...edit, emailType }, zone.domain)
  const gone = new Set(removed)
  // A row that is still there stays as it was read, so that it does not count as changed.
  const rows = [...zone.rows.filter((row) => !gone.has(row)), ...added]
  if (emailType !== undefined) return { ...zone, rows, emailType }
  if (added.length + removed.length === 0) return { ...zone, rows }
  const resolved = resolveEmailType({ requested: undefined, before: zone, rows })
  if ('emailType' in resolved) return { ...zone, rows, ...resolved }
  throw emailTypeConflict('conflict' in resolved ? resolved.conflict : resolved.fault)
}

/**
 * The zone without what one change did; later changes stay.
 * @throws {HttpError} revert_conflict where a later change touched the same records.
 */
export function revertChange(zone: Zone, edit: RevertEdit): Zone {
  const { domain } = zone
  demandNone(subtract(edit.added, zone.rows, domain), domain, 'was changed or removed since')
  const rest = subtract(zone.rows, edit.added, domain)
  const keys = new Set(rest.map((row) => keyOf(row, domain)))
  const present = edit.removed.filter((row) => keys.has(keyOf(row, domain)))
  demandNone(present, domain, 'was added again since')

  const restored = edit.removed.map((row) => ({ ...untouched(row), isNew: true }))
  const { error } = findConflicts([...rest.map((row) => untouched(row)), ...restored], domain)
  if (error) throw revertConflict(error.message)
  const rows = [...rest, ...edit.removed]
  if (rows.length > Math.max(maxRecords, zone.rows.length)) throw tooManyRecords()
  return { ...zone, rows, emailType: revertedEmailType(zone, edit, rows) }
}

function revertedEmailType(zone: Zone, edit: RevertEdit, rows: Row[]): string | undefined {
  const { emailTypeBefore, emailTypeAfter } = edit
  const isChanged = emailTypeBefore !== emailTypeAfter
  if (isChanged && zone.emailType !== emailTypeAfter && zone.emailType !== emailTypeBefore) {
    throw revertConflict(`The email type was changed since, to ${zone.emailType}`)
  }
  const requested = isChanged ? emailTypeBefore : undefined
  const resolved = resolveEmailType({ requested, before: zone, rows })
  // The former type may not suit records that were added later: they stay, and decide.
  const fallback =
    'fault' in resolved ? resolveEmailType({ requested: undefined, before: zone, rows }) : resolved
  if ('emailType' in fallback) return fallback.emailType
  throw 'conflict' in fallback
    ? emailTypeConflict(fallback.conflict)
    : revertConflict(fallback.fault)
}

function demandNone(rows: Row[], domain: string, problem: string) {
  const [first] = rows
  if (!first) return
  const { name, type, address } = toRecord(first, domain)
  const others = rows.length > 1 ? ` (and ${rows.length - 1} more)` : ''
  throw revertConflict(`${name} ${type} ${address} ${problem}${others}`)
}
