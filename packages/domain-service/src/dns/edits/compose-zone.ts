import { type Fault, type HttpError, validationFailed } from '@domains-and-files/http'
import { emailTypeConflict, recordConflict, recordExists, tooManyRecords } from '../../errors.ts'
import { resolveEmailType } from '../email-type.ts'
import { isSameRows, keyOf, nameOf, type Row, toRecord, type Zone } from '../record.ts'
import type { Field } from '../record-validation.ts'
import type { Candidate } from './candidate.ts'

export const maxRecords = 150

/**
 * The zone of these rows and the email type that goes with them.
 * @throws {HttpError} validation_failed with all faults; else record_exists or record_conflict, too_many_records,
 * email_type_conflict.
 */
export function composeZone(
  zone: Zone,
  candidates: Candidate[],
  requested: { emailType?: string | undefined } = {},
): Zone {
  const rows = candidates.map(({ row }) => row)
  const next = { ...zone, rows }
  const conflicts = findConflicts(candidates, zone.domain)
  const faults = [...candidates.flatMap((candidate) => candidate.faults), ...conflicts.faults]
  if (
    faults.length === 0 &&
    isSameRows(rows, zone.rows, zone.domain) &&
    (requested.emailType ?? zone.emailType) === zone.emailType
  )
    return next

  const resolved = resolveEmailType({ requested: requested.emailType, before: zone, rows })
  if ('fault' in resolved) faults.push({ path: '/email_type', message: resolved.fault })
  if (faults.length > 0) throw validationFailed(distinct(faults))
  if (conflicts.error) throw conflicts.error
  if (rows.length > maxRecords && rows.length > zone.rows.length) throw tooManyRecords()
  if ('conflict' in resolved) throw emailTypeConflict(resolved.conflict)
  return { ...next, ...resolved }
}

// Every value of an RRset has the same name and TTL: one fault is enough.
const distinct = (faults: Fault[]) => [
  ...new Map(faults.map((fault) => [JSON.stringify(fault), fault])).values(),
]

/** `faults` are between records of the request; `error` (409) is with a live record that the request does not name. */
interface Conflicts {
  faults: Fault[]
  error: HttpError | undefined
}

/** Finds new rows that cannot be in one zone with another row. */
export function findConflicts(candidates: Candidate[], domain: string): Conflicts {
  const byKey = Map.groupBy(candidates, ({ row }) => keyOf(row, domain))
  const byName = Map.groupBy(candidates, ({ row }) => nameOf(row, domain))
  const conflicts = [
    ...[...byKey.values()].flatMap((same) => pairUp(same, identical)),
    ...[...byName.values()].flatMap(conflictsAtName),
    ...pairUp(ofType(candidates, 'MXE'), secondMxe),
    ...pairUp(ofType(candidates, 'MX', 'MXE'), mixedMail),
  ]
  const live = conflicts.find(({ other }) => other.pointer === undefined)
  return {
    faults: conflicts.flatMap(({ candidate, other, rule }) =>
      candidate.pointer && other.pointer
        ? { path: candidate.pointer(rule.field), message: rule.message(other.pointer(rule.field)) }
        : [],
    ),
    error: live && toError(live, domain),
  }
}

/** Why two records cannot be in one zone. */
interface Rule {
  field: Field
  message: (pointer: string) => string
  /** Completes "the record x cannot be added: …". */
  reason: string
  applies?: (a: Row, b: Row) => boolean
}

interface Conflict {
  candidate: Candidate
  other: Candidate
  rule: Rule
}

const differ = (a: Row, b: Row) => a.type !== b.type || a.address !== b.address

const identical: Rule = {
  field: 'name',
  message: (pointer) => `is the same record as ${parentOf(pointer)}`,
  reason: 'it is there already',
}

const secondMxe: Rule = {
  field: 'type',
  message: (pointer) => `is a second MXE beside ${parentOf(pointer)}: a zone has one`,
  reason: 'a zone has only one MXE record',
}

const mixedMail: Rule = {
  field: 'type',
  message: (pointer) => `MX and MXE cannot be in one zone: see ${parentOf(pointer)}`,
  reason: 'MX and MXE cannot be in one zone',
  applies: (a, b) => a.type !== b.type,
}

const loneCname: Rule = {
  field: 'name',
  message: (pointer) => `a CNAME must be alone at its name: see ${parentOf(pointer)}`,
  reason: 'a CNAME must be alone at its name',
  applies: (a, b) => (a.type === 'CNAME' || b.type === 'CNAME') && differ(a, b),
}

const aliasBesideAddress: Rule = {
  field: 'name',
  message: (pointer) => `an ALIAS must not be beside A or AAAA: see ${parentOf(pointer)}`,
  reason: 'an ALIAS must not be beside A or AAAA',
  applies: (a, b) => (a.type === 'ALIAS') !== (b.type === 'ALIAS'),
}

const secondRedirect: Rule = {
  field: 'name',
  message: (pointer) => `is a second redirect beside ${parentOf(pointer)}: a name has one`,
  reason: 'a name has only one redirect (URL, URL301 or FRAME)',
  applies: differ,
}

const conflictsAtName = (candidates: Candidate[]): Conflict[] => [
  ...pairUp(candidates, loneCname),
  ...pairUp(ofType(candidates, 'ALIAS', 'A', 'AAAA'), aliasBesideAddress),
  ...pairUp(ofType(candidates, 'URL', 'URL301', 'FRAME'), secondRedirect),
]

// Each new candidate with the first other one that it conflicts with; live ones that the request leaves alone last.
function pairUp(candidates: Candidate[], rule: Rule): Conflict[] {
  const { applies = () => true } = rule
  return candidates.flatMap((candidate) => {
    if (!candidate.isNew) return []
    const others = candidates.filter(
      (each) => each !== candidate && applies(candidate.row, each.row),
    )
    const other = others.find(({ pointer }) => pointer !== undefined) ?? others[0]
    return other ? [{ candidate, other, rule }] : []
  })
}

const ofType = (candidates: Candidate[], ...types: string[]) =>
  candidates.filter(({ row }) => types.includes(row.type))

function toError({ candidate, other, rule }: Conflict, domain: string): HttpError {
  const live = toRecord(other.row, domain)
  if (rule === identical) return recordExists(live)
  return recordConflict(toRecord(candidate.row, domain), live, rule.reason)
}

// "/hosts/3/name" is of the record "/hosts/3".
const parentOf = (pointer: string) => pointer.replace(/\/(?:name|type)$/, '')
