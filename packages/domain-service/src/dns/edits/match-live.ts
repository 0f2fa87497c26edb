import { keyOf, type Row, toRecord, type Zone } from '../record.ts'
import { type RecordInput, toRow } from '../record-validation.ts'

/**
 * The live row that each record stands for, if any: first those that are written exactly as GET returns them, then
 * those that mean the same. Each live row is taken once.
 */
export function matchLive(records: RecordInput[], zone: Zone): (Row | undefined)[] {
  const { domain } = zone
  const written = Map.groupBy(zone.rows, (row) => textOf(toRecord(row, domain)))
  const taken = new Set<Row>()
  const exact = records.map((record) => take(record, written.get(textOf(record)), taken, domain))
  const meant = Map.groupBy(zone.rows, (row) => keyOf(row, domain))
  return records.map((record, index) => {
    if (exact[index]) return exact[index]
    const { row } = toRow(record, domain)
    return take(record, meant.get(keyOf(row, domain)), taken, domain)
  })
}

const textOf = ({ name, type, address }: RecordInput) => JSON.stringify([name, type, address])

// Takes the first free row whose TTL and MX preference are as given, or not given.
function take(
  record: RecordInput,
  rows: Row[] | undefined,
  taken: Set<Row>,
  domain: string,
): Row | undefined {
  const found = rows?.find((row) => {
    const { ttl, mx_pref } = toRecord(row, domain)
    return (
      !taken.has(row) &&
      (record.ttl ?? ttl) === ttl &&
      (mx_pref === undefined || (record.mx_pref ?? mx_pref) === mx_pref)
    )
  })
  if (found) taken.add(found)
  return found
}
