import { contentOf, keyOf, type Zone } from '../record.ts'
import { type RecordInput, type RecordKey, toRow } from '../record-validation.ts'
import { newCandidate, untouched } from './candidate.ts'
import { composeZone } from './compose-zone.ts'
import type { EnsureEdit } from './zone-edit.ts'

/** The zone with `present` records added where they are missing and `absent` ones removed where they are found. */
export function ensureRecords(zone: Zone, { present, absent }: EnsureEdit): Zone {
  const wanted = new Map(
    present.map((record, index) => [
      keyOfInput(record, zone.domain),
      newCandidate(record, zone, (field) => `/present/${index}/${field}`),
    ]),
  )
  const unwanted = new Set(absent.map((record) => keyOfInput(record, zone.domain)))
  const satisfied = new Set<string>()
  const rest = zone.rows.flatMap((row) => {
    const key = keyOf(row, zone.domain)
    const record = wanted.get(key)
    if (!record) return unwanted.has(key) ? [] : untouched(row)
    if (contentOf(record.row, zone.domain) !== contentOf(row, zone.domain)) return []
    satisfied.add(key)
    return untouched(row)
  })
  const missing = [...wanted].flatMap(([key, record]) => (satisfied.has(key) ? [] : record))
  return composeZone(zone, [...rest, ...missing])
}

const keyOfInput = (record: RecordInput | RecordKey, domain: string) =>
  keyOf(toRow(record, domain).row, domain)
