import type { Fault } from '@domains-and-files/http'
import { z } from 'zod'
import { type Domain, readDomain } from '../../dns/domain-name.ts'
import { rrsetPointer } from '../../dns/edits/apply-edit.ts'
import { findConflicts, type Pointer } from '../../dns/edits/compose-zone.ts'
import type { EditLists, SetRrsetEdit, ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { type Field, faultsOf, type RecordInput, toRow } from '../../dns/record.ts'
import { recordTypes } from '../../dns/record-types.ts'
import { emailTypes, readValue } from '../../dns/zone.ts'

// Names, addresses and bounds are validated against the live zone: what is already there unchanged is never refused.
export const text = z.string('must be a string')
const integer = z.int('must be a whole number')

/** One of these words, in any case. */
export const oneOf = <const Words extends readonly string[]>(words: Words, missing = 'must be given once') =>
  z
    .string(missing)
    .transform((word) => word.toUpperCase())
    .pipe(z.enum(words, `must be one of ${words.join(', ')}`))
    .meta({ enum: [...words] })

export const EmailType = oneOf(emailTypes, 'must be a string').describe('default: unchanged')

const typeOf = (types: readonly string[]) => oneOf(types).meta({ description: 'in any case', examples: ['A'] })

/** The type of a record in a path, in any case. */
export const RecordType = typeOf(recordTypes)

/** The type in a filter of a list: SRV records can be made in the registrar's panel, and read. */
export const TypeFilter = typeOf([...recordTypes, 'SRV']).optional()

/** The fields of a record in a request body, but for its type. */
export const recordFields = {
  name: text.meta({ description: '@ for the domain itself', examples: ['www'] }),
  address: text.meta({ examples: ['192.0.2.10'] }),
  ttl: integer
    .optional()
    .meta({ description: 'seconds; default: that of the live record, else 1800', minimum: 60, maximum: 60_000 }),
  mx_pref: integer
    .optional()
    .meta({ description: 'used for MX only; default: that of the live record, else 10', minimum: 0, maximum: 65_535 }),
  id: z.string().optional().describe('ignored'),
}

/** The records of a list in a request body. */
export const Records = z.array(
  z.strictObject({ ...recordFields, type: text.meta({ examples: ['A'] }) }),
  'must be a list of records',
)

/** The fields of a JSON merge patch of a record (RFC 7396). */
export const patchFields = {
  name: text.optional(),
  type: text.optional().describe('as it is: a type cannot be changed'),
  address: text.optional(),
  ttl: integer.nullable().optional().describe('seconds; null: 1800'),
  mx_pref: integer.nullable().optional().describe('used for MX only; null: 10'),
}

/**
 * The faults of an edit that no live record excuses, so that they can be found before the zone is read. Values that the
 * schemas have rejected are undefined, and not checked.
 */
export function editFaults(edit: ZoneEdit, domain: string): Fault[] {
  if (edit.kind === 'setRrset') return rrsetFaults(edit, domain)
  const { isSingle, update = [], add = [], records = [] } = edit as EditLists
  const pointTo = (list: string) => (given: Given | undefined, index: number) => ({
    given: given ?? {},
    pointer: isSingle ? singlePointer : (field: Field) => `/${list}/${index}/${field}`,
  })
  // Without type and address: the live record has the type, and the type decides which addresses are valid.
  const updated = update.map(({ patch: { name, ttl } }) => ({ name, ttl: ttl ?? undefined })).map(pointTo('update'))
  const added = [...add.map(pointTo('add')), ...records.map(pointTo('hosts'))]
  const rows = added.flatMap(({ given: { name, type, address }, pointer }) => {
    if (name === undefined || type === undefined || address === undefined) return []
    return { row: toRow({ name, type, address }), pointer }
  })
  const faults = [...updated, ...added].flatMap(({ given, pointer }) => recordFaults(given, domain, pointer))
  return [...faults, ...findConflicts(rows, []).faults]
}

/** The faults of an RRset in its name, its TTL and its values. */
function rrsetFaults({ name, type, newTtl, ttl = newTtl, values = [] }: Partial<SetRrsetEdit>, domain: string) {
  const addresses = values.map((value: string | undefined) => value && readValue(type ?? '', value).address)
  return [undefined, ...addresses].flatMap((address, index) =>
    recordFaults({ name, type, ttl, address }, domain, rrsetPointer(index - 1)),
  )
}

/** A request by the schemas of its route. */
export interface RequestOf<Route extends { schema: { params: z.ZodType; body: z.ZodType } }> {
  params: z.output<Route['schema']['params']>
  body: z.output<Route['schema']['body']>
}

/** The options of a route with records in its body, of which its handler makes an edit. Finds the faults of the edit, too. */
export function takingRecords<Route extends { config: object }, Request>(
  route: Route,
  editOf: (request: Request) => ZoneEdit,
) {
  const moreFaults = ({ params, body }: { params: unknown; body: unknown }): Fault[] => {
    // All values that the schemas have not rejected have their types, but the domain is a text if the path has a fault.
    const { domain } = params as { domain?: Domain | string }
    const found = typeof domain === 'string' ? readDomain(domain) : domain
    return editFaults(editOf({ params, body: body ?? {} } as Request), typeof found === 'object' ? found.name : '')
  }
  return { ...route, config: { ...route.config, moreFaults }, bodyLimit: maxRecordsBytes }
}

// 150 records of 2500 characters, each escaped in JSON as two surrogates.
const maxRecordsBytes = 5 * 1024 * 1024

type Given = { [Name in keyof RecordInput]?: RecordInput[Name] | undefined }

// The type of an added record is in the path; that of a changed one is left out.
const singlePointer: Pointer = (field) => (field === 'type' ? '/path/type' : `/${field}`)

// Checks only the fields that are present.
function recordFaults(given: Given, domain: string, pointer: Pointer): Fault[] {
  const { name = '_', type = 'TXT', address = '_', ttl, mx_pref } = given
  const faults = faultsOf({ name, type, address, ttl, mx_pref }, domain)
  return faults.flatMap(([field, message]) => (given[field] === undefined ? [] : { path: pointer(field), message }))
}
