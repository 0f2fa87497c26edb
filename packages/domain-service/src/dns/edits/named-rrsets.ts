import { toRecord, type Zone } from '../record.ts'
import { type RecordKey, type RecordPatch, toRow, validateName } from '../record-validation.ts'
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
  const { domain } = zone
  const { records = [], ids = [], updates = [] } = namedBy(edit)
  const live = new Map(
    zone.rows.map((row) => toRecord(row, domain)).map((record) => [record.id, record]),
  )
  const old = [...ids, ...updates.map(({ id }) => id)].flatMap((id) => live.get(id) ?? [])
  const renamed = updates.flatMap(({ id, patch }) => {
    const type = live.get(id)?.type
    return type && patch.name !== undefined ? { name: ownerOf(patch.name), type } : []
  })
  const wanted = [...records.map((record) => toRow(record, domain).row), ...renamed]
  return [...old, ...wanted.filter(({ name }) => validateName(name, domain) === undefined)].map(
    ({ name, type }) => ({ name, type }),
  )
}

interface Named {
  records?: RecordKey[]
  ids?: string[]
  updates?: { id: string; patch: RecordPatch }[]
}

function namedBy(edit: ZoneEdit): Named {
  switch (edit.kind) {
    case 'batch':
      return { records: edit.add ?? [], ids: edit.remove ?? [], updates: edit.update ?? [] }
    case 'setRrset':
    case 'removeRrset':
      return { records: [{ ...edit, address: '' }] }
    case 'ensure':
      return { records: [...edit.present, ...edit.absent] }
    case 'replace':
      return { records: edit.records }
    case 'restore':
    case 'revert':
      return {}
  }
}
