import { toRecord, type Zone } from '../record.ts'
import { type RecordKey, toRow, validateName } from '../record-validation.ts'
import { ownerOf } from '../rrset.ts'
import type { ZoneEdit } from './zone-edit.ts'

/** A record's name, relative to its domain, and its type. */
export interface NamedRrset {
  name: string
  type: string
}

/**
 * The RRsets that an edit names, whether or not it changes them: those of its records, and of the live records whose
 * ids it gives. An invalid name is left out, since it names none.
 */
export function namedRrsets(zone: Zone, edit: ZoneEdit): NamedRrset[] {
  switch (edit.kind) {
    case 'add':
      return ofRecords(zone, [edit.record])
    case 'update':
      return ofUpdates(zone, [edit])
    case 'remove':
      return ofIds(zone, [edit.id])
    case 'batch':
      return [
        ...ofIds(zone, edit.remove ?? []),
        ...ofUpdates(zone, edit.update ?? []),
        ...ofRecords(zone, edit.add ?? []),
      ]
    case 'setRrset':
    case 'removeRrset':
      return ofRecords(zone, [{ ...edit, address: '' }])
    case 'ensure':
      return ofRecords(zone, [...edit.present, ...edit.absent])
    case 'replace':
      return ofRecords(zone, edit.records)
    case 'restore':
    case 'revert':
      return []
  }
}

const ofRecords = (zone: Zone, records: RecordKey[]): NamedRrset[] =>
  records.flatMap((record) => {
    const { name, type } = toRow(record, zone.domain).row
    return validateName(name, zone.domain) === undefined ? { name, type } : []
  })

const ofIds = (zone: Zone, ids: string[]): NamedRrset[] => {
  const wanted = new Set(ids)
  return zone.rows
    .map((row) => toRecord(row, zone.domain))
    .filter(({ id }) => wanted.has(id))
    .map(({ name, type }) => ({ name, type }))
}

const ofUpdates = (
  zone: Zone,
  updates: { id: string; patch: { name?: string | null | undefined } }[],
): NamedRrset[] =>
  updates.flatMap(({ id, patch }) => {
    const old = ofIds(zone, [id])
    const { name } = patch
    if (typeof name !== 'string') return old
    const owner = ownerOf(name)
    const isValid = validateName(owner, zone.domain) === undefined
    return [...old, ...(isValid ? old.map(({ type }) => ({ name: owner, type })) : [])]
  })
