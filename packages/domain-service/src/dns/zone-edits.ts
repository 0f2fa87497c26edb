import { type Fault, validationFailed } from '@domains-and-files/http'
import { emailTypeConflict, recordExists, recordNotFound, tooManyRecords } from '../errors.ts'
import { resolveEmailType } from './email-type.ts'
import {
  contentOf,
  defaultMxPref,
  defaultTtl,
  keyOf,
  nameOf,
  type Row,
  subtract,
  toRecord,
  type Zone,
} from './record.ts'
import { type RecordInput, toRow } from './record-validation.ts'

/** What a caller wants of a zone: worked out against the zone as it is when the write comes to its turn. */
export type ZoneEdit = (zone: Zone) => Zone

const maxRecords = 150

/** The zone with exactly these records. A row that is there already stays byte for byte as it was read. */
export const replaceWith =
  (drafts: RecordInput[], emailType: string | undefined): ZoneEdit =>
  (zone) => {
    if (drafts.length > Math.max(maxRecords, zone.rows.length)) {
      throw validationFailed([
        { path: '/hosts', message: `must have at most ${maxRecords} records` },
      ])
    }
    const parts = matchLive(drafts, zone)
    const faults = [...parts.flatMap((part) => part.faults), ...judgeZone(parts, zone)]
    if (parts.length > maxRecords && parts.some((part) => part.isNew)) {
      faults.push({ path: '/hosts', message: `must have at most ${maxRecords} records` })
    }
    const rows = parts.map((part) => part.row)
    return withEmailType(zone, rows, { asked: emailType, faults })
  }

/** The zone with one record more. The same name, type and address twice is refused. */
export const addRecord =
  (draft: RecordInput, emailType: string | undefined): ZoneEdit =>
  (zone) => {
    const { row, objections } = toRow(draft, zone.domain)
    const twin = zone.rows.find((each) => keyOf(each, zone.domain) === keyOf(row, zone.domain))
    if (twin) throw recordExists(toRecord(twin, zone.domain))
    if (zone.rows.length >= maxRecords) throw tooManyRecords()
    const faults = objections.map(([field, message]) => ({ path: `/${field}`, message }))
    const live = zone.rows.map((each, at): Part => ({ at, row: each, isNew: false, faults: [] }))
    const added: Part = { at: live.length, row, isNew: true, faults }
    const clashes = judgeZone([...live, added], zone).map((fault) => ({ ...fault, path: '/name' }))
    return withEmailType(zone, [...zone.rows, row], {
      asked: emailType,
      faults: [...faults, ...clashes],
    })
  }

/** What today's rules have against a record to add, before anything is asked of the registrar. */
export function validateInput(draft: RecordInput, domain: string) {
  const faults = toRow(draft, domain).objections.map(([field, message]) => ({
    path: `/${field}`,
    message,
  }))
  if (faults.length > 0) throw validationFailed(faults)
}

/** The zone without the record of that id. */
export const removeRecord =
  (id: string): ZoneEdit =>
  (zone) => {
    const rows = zone.rows.filter((row) => toRecord(row, zone.domain).id !== id)
    if (rows.length === zone.rows.length) throw recordNotFound(id)
    return withEmailType(zone, rows, { asked: undefined, faults: [] })
  }

/** A zone of the past again, rows and email type as they were; the registrar took them once, so no rule is asked. */
export const restore =
  (past: { rows: Row[]; emailType: string | undefined }): ZoneEdit =>
  (zone) => ({
    ...zone,
    // A row that is still there is kept as it is now read, so that it is not told as changed.
    rows: [...keep(zone, past.rows), ...subtract(past.rows, zone.rows, zone.domain)],
    emailType: past.emailType ?? zone.emailType,
  })

function keep(zone: Zone, wanted: Row[]): Row[] {
  const gone = new Set(subtract(zone.rows, wanted, zone.domain))
  return zone.rows.filter((row) => !gone.has(row))
}

/**
 * The records of a list, each with the live row that it stands for, if any: first those that are written exactly as
 * GET tells them, then those that mean the same. Only what has no live row is judged by today's rules.
 */
function matchLive(drafts: RecordInput[], zone: Zone): Part[] {
  const { domain } = zone
  const told = new Map<string, Row[]>()
  for (const row of zone.rows) push(told, writtenAs(toRecord(row, domain)), row)
  const exact = drafts.map((draft) => told.get(writtenAs(draft))?.shift())
  const meant = new Map<string, Row[]>()
  for (const row of [...told.values()].flat()) push(meant, contentOf(row, domain), row)
  return drafts.map((draft, at) => {
    const { row, objections } = toRow(draft, domain)
    const live = exact[at] ?? meant.get(contentOf(row, domain))?.shift()
    if (live) return { at, row: live, isNew: false, faults: [] }
    const faults = objections.map(([field, message]) => ({
      path: `/hosts/${at}/${field}`,
      message,
    }))
    return { at, row, isNew: true, faults }
  })
}

const writtenAs = ({ name, type, address, ttl = defaultTtl, mx_pref }: RecordInput) =>
  JSON.stringify([name, type, address, ttl, type === 'MX' ? (mx_pref ?? defaultMxPref) : mx_pref])

/** A record of a list, and whether it is new to the zone: only new ones are ever blamed. */
interface Part {
  at: number
  row: Row
  isNew: boolean
  faults: Fault[]
}

function withEmailType(
  zone: Zone,
  rows: Row[],
  given: { asked: string | undefined; faults: Fault[] },
): Zone {
  const isSame =
    rows.length === zone.rows.length && subtract(rows, zone.rows, zone.domain).length === 0
  if (isSame && (given.asked === undefined || given.asked === zone.emailType))
    return { ...zone, rows }
  const resolved = resolveEmailType({ asked: given.asked, before: zone, rows })
  const faults =
    'fault' in resolved
      ? [...given.faults, { path: '/email_type', message: resolved.fault }]
      : given.faults
  if (faults.length > 0) throw validationFailed(faults)
  if ('conflict' in resolved) throw emailTypeConflict(resolved.conflict)
  return { ...zone, rows, emailType: 'emailType' in resolved ? resolved.emailType : zone.emailType }
}

function judgeZone(parts: Part[], zone: Zone): Fault[] {
  const byKey = new Map<string, Part[]>()
  const byName = new Map<string, Part[]>()
  for (const part of parts) {
    push(byKey, keyOf(part.row, zone.domain), part)
    push(byName, nameOf(part.row, zone.domain), part)
  }
  return [
    ...[...byKey.values()].flatMap(judgeTwins),
    ...[...byName.values()].flatMap(judgeName),
    ...judgeMxe(parts.filter((part) => part.row.type === 'MXE')),
  ]
}

const judgeTwins = (twins: Part[]) =>
  blame(twins, { field: 'name', tell: (other) => `is the same record as /hosts/${other.at}` })

const judgeMxe = (parts: Part[]) =>
  blame(parts, {
    field: 'type',
    tell: (other) => `is a second MXE beside /hosts/${other.at}: a zone has one`,
  })

const redirects = ['URL', 'URL301', 'FRAME']

function judgeName(parts: Part[]): Fault[] {
  const typed = (...types: string[]) => parts.filter((part) => types.includes(part.row.type))
  const isCname = (part: Part) => part.row.type === 'CNAME'
  const isAlias = (part: Part) => part.row.type === 'ALIAS'
  const differ = (a: Part, b: Part) => a.row.type !== b.row.type || a.row.address !== b.row.address
  return [
    ...blame(parts, {
      field: 'name',
      tell: (other) => `a CNAME must be alone at its name: see /hosts/${other.at}`,
      clash: (a, b) => (isCname(a) || isCname(b)) && differ(a, b),
    }),
    ...blame(typed('ALIAS', 'A', 'AAAA'), {
      field: 'name',
      tell: (other) => `an ALIAS must not stand beside A or AAAA: see /hosts/${other.at}`,
      clash: (a, b) => isAlias(a) !== isAlias(b),
    }),
    ...blame(typed(...redirects), {
      field: 'name',
      tell: (other) => `is a second redirect beside /hosts/${other.at}: a name has one`,
      clash: differ,
    }),
  ]
}

interface Rule {
  field: string
  tell: (other: Part) => string
  clash?: (a: Part, b: Part) => boolean
}

// Each new one of the parts that clash, told of one that it clashes with.
const blame = (parts: Part[], { field, tell, clash = () => true }: Rule): Fault[] =>
  parts.flatMap((part) => {
    if (!part.isNew) return []
    const other = parts.find((each) => each !== part && clash(part, each))
    return other ? [{ path: `/hosts/${part.at}/${field}`, message: tell(other) }] : []
  })

function push<Value>(lists: Map<string, Value[]>, key: string, value: Value) {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}
