import { validationFailed } from '@domains-and-files/http'
import type { Zone } from '../record.ts'
import { type Candidate, newCandidate, type Pointer } from './candidate.ts'
import { composeZone, maxRecords } from './compose-zone.ts'
import { matchLive } from './match-live.ts'
import type { ReplaceEdit } from './zone-edit.ts'

/** The zone with exactly these records. A row that is there already stays byte for byte as it was read. */
export function replaceRecords(zone: Zone, { records, emailType, lines }: ReplaceEdit): Zone {
  const tooMany = { path: '/hosts', message: `must have at most ${maxRecords} records` }
  if (records.length > Math.max(maxRecords, zone.rows.length)) throw validationFailed([tooMany])
  const live = matchLive(records, zone)
  const candidates = records.map((record, index): Candidate => {
    const pointer = pointerTo(index, lines)
    const row = live[index]
    return row ? { row, isNew: false, pointer, faults: [] } : newCandidate(record, zone, pointer)
  })
  const overfull = candidates.find(({ isNew }) => isNew && candidates.length > maxRecords)
  overfull?.faults.push(tooMany)
  return composeZone(zone, candidates, { emailType })
}

function pointerTo(index: number, lines: number[] | undefined): Pointer {
  return lines ? () => `/line/${lines[index]}` : (field) => `/hosts/${index}/${field}`
}
