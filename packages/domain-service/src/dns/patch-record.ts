import type { Candidate, Pointer } from './candidate.ts'
import {
  contentOf,
  defaultMxPref,
  defaultTtl,
  isWritable,
  type Row,
  toRecord,
  type Zone,
} from './record.ts'
import { type FieldFault, type RecordPatch, toRow } from './record-validation.ts'

/** A live row with a patch applied. Values that the patch leaves alone stay byte for byte, and are not validated. */
export function patchCandidate(
  row: Row,
  patch: RecordPatch,
  context: { zone: Zone; pointer: Pointer },
): Candidate {
  const { zone, pointer } = context
  const before = toRecord(row, zone.domain)
  const after = {
    ...before,
    name: patch.name ?? before.name,
    address: patch.address ?? before.address,
    ttl: patch.ttl === null ? defaultTtl : (patch.ttl ?? before.ttl),
    mx_pref: patch.mx_pref === null ? defaultMxPref : (patch.mx_pref ?? before.mx_pref),
  }
  const wanted = toRow(after, zone.domain)
  const next: Row = {
    ...row,
    ...(patch.name === undefined ? {} : { name: wanted.row.name }),
    ...(patch.address === undefined ? {} : { address: wanted.row.address }),
    ...(patch.ttl === undefined ? {} : { ttl: wanted.row.ttl }),
    ...(patch.mx_pref === undefined || before.type !== 'MX' ? {} : { mxPref: wanted.row.mxPref }),
  }
  const isNew = contentOf(next, zone.domain) !== contentOf(row, zone.domain)
  const old = toRow(before, zone.domain).faults.map(String)
  const faults: FieldFault[] = [
    ...validateType(before.type, patch.type),
    ...wanted.faults.filter((fault) => !old.includes(String(fault))),
  ]
  return {
    row: isNew ? next : row,
    isNew,
    pointer,
    faults: faults.map(([field, message]) => ({ path: pointer(field), message })),
  }
}

function validateType(type: string, requested: string | undefined): FieldFault[] {
  if (!isWritable(type)) return [['type', `is ${type}: such records can be read, not written`]]
  return requested === undefined || requested.toUpperCase() === type
    ? []
    : [['type', `is ${type}, and cannot be changed: remove the record and add another`]]
}
