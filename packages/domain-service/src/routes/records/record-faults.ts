import type { Fault } from '@domains-and-files/http'
import { z } from 'zod'
import { readDomain } from '../../dns/domain-name.ts'
import type { Candidate, Pointer } from '../../dns/edits/candidate.ts'
import { findConflicts } from '../../dns/edits/compose-zone.ts'
import { toRow } from '../../dns/record-validation.ts'

// The faults of requests that may not have passed their schemas: values of another JSON type are left to those.

interface Unvalidated {
  params: unknown
  body: unknown
}

/** The faults of a request to add a record, in its path and its body. No live record excuses them. */
export function addedRecordFaults({ params, body }: Unvalidated): Fault[] {
  const { record: type } = PathValues.parse(params)
  const { domain, faults } = readPath(params)
  const pointer: Pointer = (field) => (field === 'type' ? '/path/type' : `/${field}`)
  return [...faults, ...recordFaults({ ...BodyObject.parse(body), type }, domain, pointer)]
}

/** The faults of a request whose body lists records in this field, and of the domain in its path. */
export const listedRecordFaults =
  (list: string) =>
  ({ params, body }: Unvalidated): Fault[] => {
    const { domain, faults } = readPath(params)
    const records = BodyList.parse(BodyObject.parse(body)[list])
    const pointerTo = (index: number) => (field: string) => `/${list}/${index}/${field}`
    const ofRecords = records.flatMap((record, index) =>
      recordFaults(BodyObject.parse(record), domain, pointerTo(index)),
    )
    const candidates = records.flatMap((record, index) =>
      toCandidates(BodyObject.parse(record), domain, pointerTo(index)),
    )
    return [...faults, ...ofRecords, ...findConflicts(candidates, domain).faults]
  }

/** The faults of a request to set an RRset, in its path, its TTL and its values; those of MX are left out. */
export function rrsetFaults({ params, body }: Unvalidated): Fault[] {
  const { name, type } = PathValues.parse(params)
  const { domain, faults } = readPath(params)
  const { ttl, values } = BodyObject.parse(body)
  const addresses = type?.toUpperCase() === 'MX' ? [] : BodyList.parse(values)
  const ofValues = [undefined, ...addresses].flatMap((address, index) =>
    recordFaults({ name, type, ttl, address }, domain, (field) => {
      if (field === 'address') return `/values/${index - 1}`
      return field === 'ttl' ? '/ttl' : `/path/${field}`
    }),
  )
  return [...faults, ...ofValues]
}

const text = z.string().optional().catch(undefined)
const integer = z.int().optional().catch(undefined)
const PathValues = z.object({ domain: text, record: text, name: text, type: text })
const BodyObject = z.record(z.string(), z.unknown()).catch({})
const BodyList = z.array(z.unknown()).catch([])
const Fields = z.object({ name: text, type: text, address: text, ttl: integer, mx_pref: integer })

function readPath(params: unknown): { domain: string; faults: Fault[] } {
  const domain = readDomain(PathValues.parse(params).domain ?? '')
  if (typeof domain !== 'string') return { domain: domain.name, faults: [] }
  return { domain: '', faults: [{ path: '/path/domain', message: domain }] }
}

function recordFaults(record: Record<string, unknown>, domain: string, pointer: Pointer): Fault[] {
  const given = Fields.parse(record)
  const { name = '_', type = 'TXT', address = '_', ttl, mx_pref } = given
  const { faults } = toRow({ name, type, address, ttl, mx_pref }, domain)
  return faults.flatMap(([field, message]) =>
    given[field] === undefined ? [] : { path: pointer(field), message },
  )
}

// None of a record that is incomplete.
function toCandidates(
  record: Record<string, unknown>,
  domain: string,
  pointer: Pointer,
): Candidate[] {
  const { name, type, address } = Fields.parse(record)
  if (name === undefined || type === undefined || address === undefined) return []
  return [{ row: toRow({ name, type, address }, domain).row, isNew: true, pointer, faults: [] }]
}
