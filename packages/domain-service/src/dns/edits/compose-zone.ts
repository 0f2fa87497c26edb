import { type Fault, type HttpError, validationFailed } from '@domains-and-files/http'
import { recordConflict, recordExists, tooManyRecords } from '../../errors.ts'
import {
  defaultMxPref,
  defaultTtl,
  type Field,
  type FieldFault,
  faultsOf,
  type HostRecord,
  isWritable,
  keyOf,
  type ParsedRow,
  parseRow,
  type RecordInput,
  type RecordPatch,
  type Row,
  toRow,
} from '../record.ts'
import { isSameRows, keepEmailType, validateEmailType, type Zone } from '../zone.ts'

/** The JSON pointer of a field in the request. */
export type Pointer = (field: Field) => string

/** A row of the zone to be: a live one, or a new one with its faults. */
export interface Candidate {
  row: Row
  /** Absent where the request does not name the row. */
  pointer?: Pointer
  faults?: Fault[]
}

const toFaults = (faults: FieldFault[], pointer: Pointer): Fault[] =>
  faults.map(([field, message]) => ({ path: pointer(field), message }))

/** A record that the request adds. Clients that know no `ttl` or `mx_pref` do not reset those of an equal live row. */
export function newCandidate(input: RecordInput, zone: Zone, pointer: Pointer, fallbackTtl = defaultTtl) {
  const row = toRow(input)
  const key = keyOf(input, zone.domain)
  const live = zone.rows.find((each) => parseRow(each).key === key)
  const ttl = input.ttl === undefined ? (live?.ttl ?? String(fallbackTtl)) : row.ttl
  const mxPref = input.mx_pref === undefined ? (live ?? row).mxPref : row.mxPref
  return { row: { ...row, ttl, mxPref }, pointer, faults: toFaults(faultsOf(input, zone.domain), pointer) }
}

/** A live row with a patch applied. Values that the patch leaves alone stay byte for byte, and are not validated. */
export function patchCandidate(row: Row, patch: RecordPatch, domain: string, pointer: Pointer): Candidate {
  const before = parseRow(row).record
  const after = mergePatch(before, patch)
  const wanted = toRow(after)
  const isChanged = (field: Field) => after[field] !== before[field]
  const next: Row = {
    ...row,
    ...(isChanged('name') && { name: wanted.name }),
    ...(isChanged('address') && { address: wanted.address }),
    ...(isChanged('ttl') && { ttl: wanted.ttl }),
    ...(isChanged('mx_pref') && { mxPref: wanted.mxPref }),
  }
  const isNew = parseRow(next).content !== parseRow(row).content
  const old = faultsOf(before, domain).map(String)
  const isFixed = !isWritable(before) || (patch.type ?? before.type).toUpperCase() !== before.type
  const fixed: FieldFault[] = isFixed ? [['type', `is ${before.type}, and cannot be changed`]] : []
  const faults = [
    ...fixed,
    ...faultsOf(after, domain).filter((fault) => isChanged(fault[0]) || !old.includes(String(fault))),
  ]
  return { row: isNew ? next : row, pointer, faults: toFaults(faults, pointer) }
}

function mergePatch(record: HostRecord, patch: RecordPatch): HostRecord {
  const { name, address, ttl, mx_pref } = patch
  const pref = mx_pref === null ? defaultMxPref : (mx_pref ?? record.mx_pref)
  return {
    ...record,
    name: name ?? record.name,
    address: address ?? record.address,
    ttl: ttl === null ? defaultTtl : (ttl ?? record.ttl),
    ...(record.type === 'MX' && pref !== undefined && { mx_pref: pref }),
  }
}

/**
 * The live row that each record stands for, if any: first those that are written as GET returns them, then those that
 * mean the same. Each live row is taken once.
 */
export function matchLive(records: RecordInput[], zone: Zone): (Row | undefined)[] {
  const taken = new Set<Row>()
  // The first free row whose TTL and MX preference are as given, or not given.
  const take = (record: RecordInput, rows: Row[] = []) => {
    const found = rows.find((row) => {
      const { ttl, mx_pref } = parseRow(row).record
      const isSamePref = mx_pref === undefined || (record.mx_pref ?? mx_pref) === mx_pref
      return !taken.has(row) && (record.ttl ?? ttl) === ttl && isSamePref
    })
    if (found) taken.add(found)
    return found
  }
  const written = Map.groupBy(zone.rows, (row) => textOf(parseRow(row).record))
  const exact = records.map((record) => take(record, written.get(textOf(record))))
  const meant = Map.groupBy(zone.rows, (row) => parseRow(row).key)
  return records.map((record, index) => exact[index] ?? take(record, meant.get(keyOf(record, zone.domain))))
}

const textOf = ({ name, type, address }: RecordInput) => JSON.stringify([name, type, address])

export const maxRecords = 150

/**
 * The zone of these rows and the email type that goes with them.
 * @throws {HttpError} validation_failed with all faults; else record_exists or record_conflict, too_many_records,
 * email_type_conflict.
 */
export function composeZone(zone: Zone, candidates: Candidate[], emailType?: string, path?: string): Zone {
  const { rows, faults, error } = findFaults(zone, candidates, emailType, path)
  if (faults.length > 0) throw validationFailed(faults)
  if ((emailType ?? zone.emailType) === zone.emailType && isSameRows(rows, zone.rows)) return zone
  if (error) throw error
  if (rows.length > maxRecords && rows.length > zone.rows.length) throw tooManyRecords()
  return { ...zone, rows, emailType: emailType ?? keepEmailType({ before: zone, rows }) }
}

/** The faults that refuse these rows and this email type, each once; `error`: as of `findConflicts`. */
export function findFaults(zone: Zone, candidates: Candidate[], emailType?: string, path = '/email_type') {
  const rows = candidates.map(({ row }) => row)
  const { faults, error } = findConflicts(candidates, zone.rows)
  const message = emailType === undefined ? undefined : validateEmailType(emailType, { before: zone, rows })
  if (message) faults.push({ path, message })
  // Every value of an RRset has the same name and TTL.
  const distinct = new Map(faults.map((fault) => [JSON.stringify(fault), fault]))
  return { rows, faults: [...distinct.values()], error }
}

/**
 * Finds new rows, beside the `live` ones, that are faulty or cannot be in one zone with another row.
 * @returns `faults` of, and between, records of the request; `error` (409) with a live record that the request does not name.
 */
export function findConflicts(candidates: Candidate[], live: Row[]) {
  const known = new Set(live)
  const sharing = (partOf: (row: ParsedRow) => string) =>
    [...Map.groupBy(candidates, ({ row }) => partOf(parseRow(row))).values()].filter(({ length }) => length > 1)
  const conflicts = [
    ...sharing(({ key }) => key).flatMap((same) => pairUp(same, [identical], known)),
    ...sharing(({ record }) => record.name).flatMap((named) => pairUp(named, rulesOfName, known)),
    ...pairUp(candidates, rulesOfZone, known),
  ]
  const unnamed = conflicts.find(({ other }) => other.pointer === undefined)
  const between = conflicts.flatMap(({ candidate, other, rule }): Fault[] =>
    candidate.pointer && other.pointer
      ? [{ path: candidate.pointer(rule.field), message: messageOf(rule, other.pointer(rule.field)) }]
      : [],
  )
  const faults = [...candidates.flatMap((each) => each.faults ?? []), ...between]
  return { faults, error: unnamed && toError(unnamed.candidate, unnamed.other, unnamed.rule) }
}

/** Why two records cannot be in one zone. */
interface Rule {
  field: Field
  /** Completes "the record x cannot be added: …". */
  reason: string
  /** Default: records of all types. */
  types?: string[]
  applies?: (a: Row, b: Row) => boolean
}

const differ = (a: Row, b: Row) => a.type !== b.type || a.address !== b.address

const identical: Rule = { field: 'name', reason: 'is the same record twice' }

const rulesOfName: Rule[] = [
  {
    field: 'name',
    reason: 'a CNAME must be alone at its name',
    applies: (a, b) => (a.type === 'CNAME' || b.type === 'CNAME') && differ(a, b),
  },
  {
    field: 'name',
    types: ['ALIAS', 'A', 'AAAA'],
    reason: 'an ALIAS must not be beside A or AAAA',
    applies: (a, b) => (a.type === 'ALIAS') !== (b.type === 'ALIAS'),
  },
  {
    field: 'name',
    types: ['URL', 'URL301', 'FRAME'],
    reason: 'a name has only one redirect (URL, URL301 or FRAME)',
    applies: differ,
  },
]

const rulesOfZone: Rule[] = [
  {
    field: 'type',
    types: ['MX', 'MXE'],
    reason: 'a zone has either MX records or one MXE record',
    applies: (a, b) => a.type === 'MXE' || b.type === 'MXE',
  },
]

// Pairs each new candidate with the first one that it conflicts with, preferring rows that the request names.
const pairUp = (candidates: Candidate[], rules: Rule[], known: ReadonlySet<Row>) =>
  rules.flatMap((rule) => {
    const { types, applies = () => true } = rule
    const ruled = candidates.filter(({ row }) => types?.includes(row.type) ?? true)
    return ruled.flatMap((candidate) => {
      if (known.has(candidate.row)) return []
      const others = ruled.filter((each) => each !== candidate && applies(candidate.row, each.row))
      const other = others.find(({ pointer }) => pointer !== undefined) ?? others[0]
      return other ? [{ candidate, other, rule }] : []
    })
  })

function toError(candidate: Candidate, other: Candidate, rule: Rule): HttpError {
  const live = parseRow(other.row).record
  if (rule === identical) return recordExists(live)
  return recordConflict(parseRow(candidate.row).record, live, rule.reason)
}

// "/hosts/3/name" is of the record "/hosts/3".
const messageOf = ({ reason }: Rule, pointer: string) => `${reason}: see ${pointer.replace(/\/(?:name|type)$/, '')}`
