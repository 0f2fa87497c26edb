import { validationFailed } from '@domains-and-files/http'
import { nameOf, type Row, toRecord, type Zone } from '../record.ts'
import type { RecordInput } from '../record-validation.ts'
import { ownerOf } from '../rrset.ts'
import { type Candidate, newCandidate, untouched } from './candidate.ts'
import { composeZone } from './compose-zone.ts'
import { matchLive } from './match-live.ts'
import type { SetRrsetEdit } from './zone-edit.ts'

/**
 * The zone with exactly these values at a name and type. Without `ttl`, values that are there keep theirs, and new ones
 * take the lowest of those.
 */
export function setRrset(zone: Zone, edit: SetRrsetEdit): Zone {
  const members = toCandidates(zone, readValues(edit))
  const others = zone.rows.filter((row) => !isMember(row, edit, zone.domain))
  return composeZone(zone, [...others.map(untouched), ...members], edit)
}

/** The zone without any record of that name and type. */
export function removeRrset(zone: Zone, name: string, type: string): Zone {
  const rows = zone.rows.filter((row) => !isMember(row, { name, type }, zone.domain))
  return composeZone(zone, rows.map(untouched))
}

const isMember = (row: Row, { name, type }: { name: string; type: string }, domain: string) =>
  nameOf(row, domain) === ownerOf(name) && row.type.toUpperCase() === type.toUpperCase()

function toCandidates(zone: Zone, records: RecordInput[]): Candidate[] {
  const live = matchLive(records, zone)
  const ttls = live.flatMap((row) => (row ? toRecord(row, zone.domain).ttl : []))
  const lowestTtl = ttls.length > 0 ? String(Math.min(...ttls)) : undefined
  return records.map((record, index) => {
    const pointer = () => `/values/${index}`
    const row = live[index]
    if (row) return { row, isNew: false, pointer, faults: [] }
    const fieldPointer = (field: string) =>
      field === 'ttl' ? '/ttl' : ['name', 'type'].includes(field) ? `/path/${field}` : pointer()
    return { ...newCandidate(record, zone, fieldPointer, lowestTtl), pointer }
  })
}

function readValues({ name, type, ttl, values }: SetRrsetEdit): RecordInput[] {
  if (values.length === 0)
    throw validationFailed([{ path: '/values', message: 'must have at least one value' }])
  if (type.toUpperCase() !== 'MX') return values.map((address) => ({ name, type, ttl, address }))
  const parts = values.map((value) => /^([0-9]{1,5})[ \t]+(\S+)$/.exec(value.trim()))
  const faults = parts.flatMap((part, index) =>
    part ? [] : { path: `/values/${index}`, message: 'must be such as 10 mx1.example.net' },
  )
  if (faults.length > 0) throw validationFailed(faults)
  return parts.map((part) => ({
    name,
    type,
    ttl,
    address: part?.[2] ?? '',
    mx_pref: Number(part?.[1]),
  }))
}
