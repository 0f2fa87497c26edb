import type { Fault } from '@domains-and-files/http'
import { defaultTtl, keyOf, type Row, type Zone } from '../record.ts'
import { type Field, type RecordInput, toRow } from '../record-validation.ts'

/** The JSON pointer of a record's field in the request. */
export type Pointer = (field: Field) => string

/** A row of the zone to be. Only new rows are validated. */
export interface Candidate {
  row: Row
  isNew: boolean
  /** Undefined where the request does not name the row. */
  pointer: Pointer | undefined
  faults: Fault[]
}

/** A live row that the request leaves alone. */
export const untouched = (row: Row): Candidate => ({
  row,
  isNew: false,
  pointer: undefined,
  faults: [],
})

/**
 * A record that the request adds. Without `ttl` or `mx_pref`, it takes those of the live row with its name, type and
 * address, so that clients which know neither do not reset them.
 */
export function newCandidate(
  input: RecordInput,
  zone: Zone,
  pointer: Pointer,
  fallbackTtl = String(defaultTtl),
): Candidate {
  const { row, faults } = toRow(input, zone.domain)
  const key = keyOf(row, zone.domain)
  const live = zone.rows.find((each) => keyOf(each, zone.domain) === key)
  return {
    row: {
      ...row,
      ...(input.ttl === undefined ? { ttl: live?.ttl ?? fallbackTtl } : {}),
      ...(live && input.mx_pref === undefined ? { mxPref: live.mxPref } : {}),
    },
    isNew: true,
    pointer,
    faults: faults.map(([field, message]) => ({ path: pointer(field), message })),
  }
}
