import type { Fault } from '@domains-and-files/http'
import { z } from 'zod'
import { readDomain } from '../../dns/domain-name.ts'
import { findConflicts, type Pointer } from '../../dns/edits/compose-zone.ts'
import type { ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { emailTypes } from '../../dns/email-type.ts'
import { recordTypes } from '../../dns/record-types.ts'
import { type RecordInput, type RecordPatch, toRow } from '../../dns/record-validation.ts'

// Names, addresses and bounds are validated against the live zone: what is already there unchanged is never refused.
export const text = z.string('must be a string')
const integer = z.int('must be a whole number')

export const EmailType = z
  .string()
  .transform((value) => value.toUpperCase())
  .pipe(z.enum(emailTypes, `must be one of ${emailTypes.join(', ')}`))
  .meta({ enum: [...emailTypes], description: 'default: unchanged' })

/** The type of a record in a path, in any case. */
export const RecordType = z
  .string()
  .transform((type) => type.toUpperCase())
  .pipe(z.enum(recordTypes, `must be one of ${recordTypes.join(', ')}`))
  .meta({ description: 'in any case', enum: [...recordTypes], examples: ['A'] })

/** The fields of a record in a request body, but for its type. */
export const recordFields = {
  name: text.meta({ description: '@ for the domain itself', examples: ['www'] }),
  address: text.meta({ examples: ['192.0.2.10'] }),
  ttl: integer.optional().meta({
    description: 'seconds; default: that of the live record, else 1800',
    minimum: 60,
    maximum: 60_000,
  }),
  mx_pref: integer.optional().meta({
    description: 'used for MX only; default: that of the live record, else 10',
    minimum: 0,
    maximum: 65_535,
  }),
  id: z.string().optional().meta({ description: 'ignored' }),
}

/** The records of a list in a request body. */
export const Records = z.array(
  z.strictObject({ ...recordFields, type: text.meta({ examples: ['A'] }) }),
  'must be a list of records',
)

/** The fields of a JSON merge patch of a record (RFC 7396). */
export const patchFields = {
  name: text.optional(),
  type: text.optional().meta({ description: 'as it is: a type cannot be changed' }),
  address: text.optional(),
  ttl: integer.nullable().optional().meta({ description: 'seconds; null: 1800' }),
  mx_pref: integer.nullable().optional().meta({ description: 'used for MX only; null: 10' }),
}

/** The faults of an edit that no live record excuses, so that they can be found before the zone is read. */
export function editFaults(edit: ZoneEdit, domain: string): Fault[] {
  if (edit.kind !== 'batch') return []
  const { update = [], add = [], isSingle } = edit
  const pointer = (list: string, index: number) =>
    isSingle ? singlePointer : listedPointer(list, index)
  return [
    ...update.flatMap(({ patch }, index) => patchFaults(patch, domain, pointer('update', index))),
    ...add.flatMap((record, index) => recordFaults(record, domain, pointer('add', index))),
  ]
}

// Checks neither type nor address: the live record has the type, and the type decides which addresses are valid.
const patchFaults = ({ name, ttl }: RecordPatch, domain: string, pointer: Pointer) =>
  recordFaults({ name, ttl: ttl ?? undefined }, domain, pointer)

// The following check requests that failed their schemas, so that one response names every fault. Fields that the schemas
// reject are undefined; all others have the types of the schemas.

type Given = { [Name in keyof RecordInput]?: RecordInput[Name] | undefined }

interface Left {
  params: { domain?: string; record?: string; name?: string; type?: string }
  body?: Given & {
    hosts?: (Given | undefined)[]
    add?: (Given | undefined)[]
    update?: (Given | undefined)[]
    values?: (string | undefined)[]
  }
}

interface Rejected {
  params: unknown
  body: unknown
}

/** The faults of a request to add a record, in its path and its body. */
export function addedRecordFaults(rejected: Rejected): Fault[] {
  const { params, body } = rejected as Left
  return recordFaults({ ...body, type: params.record }, domainOf(params), singlePointer)
}

/** The faults of a patch of a record. */
export function patchedRecordFaults(rejected: Rejected): Fault[] {
  const { params, body = {} } = rejected as Left
  return patchFaults(body, domainOf(params), singlePointer)
}

/** The faults of a request whose body lists records in this field; with `add`, those of its updates, too. */
export const listedRecordFaults =
  (list: 'hosts' | 'add') =>
  (rejected: Rejected): Fault[] => {
    const { params, body } = rejected as Left
    const domain = domainOf(params)
    const updates = (list === 'add' && body?.update) || []
    const records = (body?.[list] ?? []).map((record = {}, index) => ({
      record,
      pointer: listedPointer(list, index),
    }))
    const candidates = records.flatMap(({ record: { name, type, address }, pointer }) => {
      if (name === undefined || type === undefined || address === undefined) return []
      const { row } = toRow({ name, type, address }, domain)
      return { row, isNew: true, pointer, faults: [] }
    })
    return [
      ...updates.flatMap((patch = {}, index) =>
        patchFaults(patch, domain, listedPointer('update', index)),
      ),
      ...records.flatMap(({ record, pointer }) => recordFaults(record, domain, pointer)),
      ...findConflicts(candidates, domain).faults,
    ]
  }

/** The faults of a request to set an RRset, in its path, its TTL and its values; those of MX are left out. */
export function rrsetFaults(rejected: Rejected): Fault[] {
  const { params, body } = rejected as Left
  const { name, type = '' } = params
  const addresses = type.toUpperCase() === 'MX' ? [] : (body?.values ?? [])
  return [undefined, ...addresses].flatMap((address, index) =>
    recordFaults({ name, type, ttl: body?.ttl, address }, domainOf(params), (field) => {
      if (field === 'address') return `/values/${index - 1}`
      return field === 'ttl' ? '/ttl' : `/path/${field}`
    }),
  )
}

// The type of an added record is in the path; that of a changed one is left out.
const singlePointer: Pointer = (field) => (field === 'type' ? '/path/type' : `/${field}`)

const listedPointer =
  (list: string, index: number): Pointer =>
  (field) =>
    `/${list}/${index}/${field}`

function domainOf({ domain = '' }: Left['params']): string {
  const found = readDomain(domain)
  return typeof found === 'string' ? '' : found.name
}

// Checks only the fields that are present.
function recordFaults(given: Given, domain: string, pointer: Pointer): Fault[] {
  const { name = '_', type = 'TXT', address = '_', ttl, mx_pref } = given
  const { faults } = toRow({ name, type, address, ttl, mx_pref }, domain)
  return faults.flatMap(([field, message]) =>
    given[field] === undefined ? [] : { path: pointer(field), message },
  )
}
