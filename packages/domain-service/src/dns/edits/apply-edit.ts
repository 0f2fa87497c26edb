import type { Zone } from '../record.ts'
import { addRecord, editBatch, removeRecord, updateRecord } from './edit-records.ts'
import { removeRrset, setRrset } from './edit-rrset.ts'
import { ensureRecords } from './ensure-records.ts'
import { replaceRecords } from './replace-records.ts'
import { restoreZone, revertChange } from './restore-zone.ts'
import type { ZoneEdit } from './zone-edit.ts'

/**
 * Applies an edit to a zone; the given zone stays as it is. Rows that the edit leaves alone are the same objects in
 * the result.
 * @throws {HttpError} validation_failed with all faults, record_not_found, record_exists, record_conflict,
 * revert_conflict, email_type_conflict, too_many_records.
 */
export function applyEdit(zone: Zone, edit: ZoneEdit): Zone {
  switch (edit.kind) {
    case 'add':
      return addRecord(zone, edit.record, edit.emailType)
    case 'update':
      return updateRecord(zone, edit)
    case 'remove':
      return removeRecord(zone, edit.id)
    case 'replace':
      return replaceRecords(zone, edit)
    case 'batch':
      return editBatch(zone, edit)
    case 'setRrset':
      return setRrset(zone, edit)
    case 'removeRrset':
      return removeRrset(zone, edit.name, edit.type)
    case 'restore':
      return restoreZone(zone, edit)
    case 'revert':
      return revertChange(zone, edit)
    case 'ensure':
      return ensureRecords(zone, edit)
  }
}
