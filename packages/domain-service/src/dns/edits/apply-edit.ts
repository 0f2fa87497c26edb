import { validationFailed } from '@domains-and-files/http'
import { recordNotFound, revertConflict, tooManyRecords } from '../../errors.ts'
import { keyOf, type NamedRrset, ownerOf, parseRow, type Row, validateName } from '../record.ts'
import { differenceOf, keepEmailType, readValue, subtract, validateEmailType, type Zone } from '../zone.ts'
import {
  type Candidate,
  composeZone,
  findConflicts,
  findFaults,
  matchLive,
  maxRecords,
  newCandidate,
  type Pointer,
  patchCandidate,
} from './compose-zone.ts'
import type {
  BatchEdit,
  EnsureEdit,
  ReplaceEdit,
  RestoreEdit,
  RevertEdit,
  SetRrsetEdit,
  ZoneEdit,
} from './zone-edit.ts'

/**
 * Applies an edit to a zone; the given zone stays as it is. Rows that the edit leaves alone are the same objects in
 * the result.
 * @throws {HttpError} validation_failed with all faults, record_not_found, record_exists, record_conflict,
 * revert_conflict, email_type_conflict, too_many_records.
 */
export function applyEdit(zone: Zone, edit: ZoneEdit): Zone {
  switch (edit.kind) {
    case 'batch':
      return applyBatch(zone, edit)
    case 'replace':
      return replaceRecords(zone, edit)
    case 'setRrset':
    case 'removeRrset':
      return setRrset(zone, edit)
    case 'restore':
      return restoreZone(zone, edit)
    case 'revert':
      return revertChange(zone, edit)
    case 'ensure':
      return ensureRecords(zone, edit)
  }
}

// Records removed, changed and added at once.
function applyBatch(zone: Zone, batch: BatchEdit): Zone {
  const { remove = [], update = [], add = [] } = batch
  const named = remove.length + update.length > 0 ? readIds(zone, batch) : undefined
  const removed = new Set(remove)
  const updates = new Map(update.map(({ id, patch }, index) => [id, { patch, index }]))
  const live = zone.rows.flatMap((row) => {
    const id = named?.ids.get(row) ?? ''
    if (removed.has(id)) return []
    const change = updates.get(id)
    if (!change) return { row }
    updates.delete(id) // Of equal rows, which the registrar would collapse, only one is changed.
    const pointer = pointerTo(batch, 'update', change.index)
    return patchCandidate(row, change.patch, zone.domain, (field) => `${pointer}/${field}`)
  })
  const added = add.map((record, index) =>
    newCandidate(record, zone, (field) => `${pointerTo(batch, 'add', index)}/${field}`),
  )
  const candidates = [...live, ...added]
  if (named && named.faults.length > 0) {
    const faults = [...named.faults, ...findFaults(zone, candidates, batch.emailType).faults]
    if (named.unknown === undefined) throw validationFailed(faults)
    throw recordNotFound(named.unknown, batch.isSingle ? undefined : faults)
  }
  return composeZone(zone, candidates, batch.emailType)
}

const pointerTo = ({ isSingle }: BatchEdit, list: string, index: number) => (isSingle ? '' : `/${list}/${index}`)

/** The ids of a zone's rows, and the faults of a batch that names others, of which `unknown` is the first, or one twice. */
function readIds(zone: Zone, batch: BatchEdit) {
  const { remove = [], update = [] } = batch
  const ids = new Map(zone.rows.map((row) => [row, parseRow(row).record.id]))
  const known = new Set(ids.values())
  const named = [
    ...remove.map((id, index) => ({ id, path: pointerTo(batch, 'remove', index) })),
    ...update.map(({ id }, index) => ({ id, path: `${pointerTo(batch, 'update', index)}/id` })),
  ]
  const faults = named.flatMap(({ id, path }, index) => {
    if (!known.has(id)) return { path, message: 'is not the id of a record' }
    const first = named.find((each) => each.id === id)
    const message = `is the same record as ${first?.path.replace('/id', '')}`
    return index < remove.length || first?.path === path ? [] : { path, message }
  })
  return { ids, faults, unknown: named.find(({ id }) => !known.has(id))?.id }
}

// Exactly these records. A row that is there already stays byte for byte as it was read.
function replaceRecords(zone: Zone, edit: ReplaceEdit): Zone {
  const { records, lines } = edit
  const tooMany = { path: '/hosts', message: `must have at most ${maxRecords} records` }
  if (records.length > Math.max(maxRecords, zone.rows.length)) throw validationFailed([tooMany])
  const live = matchLive(records, zone)
  const candidates = records.map((record, index): Candidate => {
    const pointer: Pointer = lines ? () => `/line/${lines[index]}` : (field) => `/hosts/${index}/${field}`
    const row = live[index]
    return row ? { row, pointer } : newCandidate(record, zone, pointer)
  })
  const firstNew = live.indexOf(undefined)
  if (firstNew >= 0 && candidates.length > maxRecords) candidates[firstNew]?.faults?.push(tooMany)
  return composeZone(zone, candidates, edit.emailType, edit.emailTypePath)
}

// Exactly these values. Without `ttl`, those that are there keep theirs, and new ones take the lowest of these.
function setRrset(zone: Zone, edit: SetRrsetEdit): Zone {
  const { name, type, ttl, values = [] } = edit
  // Of a malformed value of MX.
  const preference = type.toUpperCase() === 'MX' ? { mx_pref: Number.NaN } : {}
  const records = values.map((value) => ({ name, type, ttl, ...preference, ...readValue(type, value) }))
  const [before, others] = splitRrset(zone, edit)
  // A name that no record can have, such as one that includes the domain: the intended records would stay.
  const message = records.length + before.length === 0 && validateName(ownerOf(name), zone.domain)
  if (message) throw validationFailed([{ path: '/path/name', message }])
  const live = matchLive(records, { ...zone, rows: before })
  const keys = records.map((record) => keyOf(record))
  const kept = before.map(parseRow).filter(({ key }) => edit.defaultTtl !== undefined || keys.includes(key))
  const lowestTtl = kept.length > 0 ? Math.min(...kept.map(({ record }) => record.ttl)) : edit.defaultTtl
  const members = records.map((record, index): Candidate => {
    const row = live[index]
    const isKept = kept.some(({ key }) => key === keys[index])
    const given = { ...record, ttl: ttl ?? (isKept ? undefined : edit.newTtl) }
    const member = row ? { row } : newCandidate(given, zone, rrsetPointer(index), lowestTtl)
    return { ...member, pointer: () => `/values/${index}` }
  })
  return composeZone(zone, [...others.map((row) => ({ row })), ...members], edit.emailType)
}

/** The JSON pointers of the value at that index, and of what the values of an RRset have in common. */
export const rrsetPointer =
  (index: number): Pointer =>
  (field) => {
    if (field === 'ttl') return '/ttl'
    return field === 'name' || field === 'type' ? `/path/${field}` : `/values/${index}`
  }

/** The rows of that RRset, and the others. */
function splitRrset({ rows }: Zone, { name, type }: NamedRrset): [Row[], Row[]] {
  const owner = ownerOf(name)
  const isMember = (row: Row) => parseRow(row).record.name === owner && row.type.toUpperCase() === type.toUpperCase()
  return [rows.filter(isMember), rows.filter((row) => !isMember(row))]
}

// `present` records added where they are missing and `absent` ones removed where they are found.
function ensureRecords(zone: Zone, edit: EnsureEdit): Zone {
  const { present, absent, defaultTtl } = edit
  const requested = new Map(present.map((record, index) => [keyOf(record, zone.domain), { record, index }]))
  // Before conflicts are looked for, which compares each record with each.
  if (requested.size > Math.max(maxRecords, zone.rows.length)) throw tooManyRecords()
  const missing = new Map(
    [...requested].map(([key, { record, index }]) => [
      key,
      newCandidate(record, zone, (field) => `/present/${index}/${field}`, defaultTtl),
    ]),
  )
  const wanted = new Map(missing)
  const unwanted = new Set(absent.map((record) => keyOf(record, zone.domain)))
  const rest = zone.rows.filter((row) => {
    const { key, content } = parseRow(row)
    const record = wanted.get(key)
    if (!record) return !unwanted.has(key)
    const isThere = parseRow(record.row).content === content
    if (isThere) missing.delete(key)
    return isThere
  })
  return composeZone(zone, [...rest.map((row) => ({ row })), ...missing.values()], edit.emailType)
}

// A former zone. The registrar accepted it once, so its records are not validated.
function restoreZone(zone: Zone, edit: RestoreEdit): Zone {
  const { emailType } = edit
  const { added, removed } = differenceOf(zone, { ...zone, rows: edit.rows })
  // A row that is still there stays as it was read, so that it does not count as changed.
  const rows = [...subtract(zone.rows, removed), ...added]
  if (emailType === undefined && added.length + removed.length === 0) return zone
  return { ...zone, rows, emailType: emailType ?? keepEmailType({ before: zone, rows }) }
}

// The zone without the effect of one change; later changes stay.
function revertChange(zone: Zone, edit: RevertEdit): Zone {
  const [changed] = subtract(edit.added, zone.rows)
  if (changed) {
    const { name, type, address } = parseRow(changed).record
    throw revertConflict(`${name} ${type} ${address} was changed or removed since`)
  }
  const rest = subtract(zone.rows, edit.added)
  const rows = [...rest, ...edit.removed]
  const candidates = rows.map((row) => ({ row }))
  const { error } = findConflicts(candidates, rest)
  if (error) throw revertConflict(error.message)
  if (rows.length > Math.max(maxRecords, zone.rows.length)) throw tooManyRecords()
  return { ...zone, rows, emailType: revertedEmailType(zone, edit, rows) }
}

function revertedEmailType(zone: Zone, edit: RevertEdit, rows: Row[]): string {
  const { emailTypeBefore, emailTypeAfter } = edit
  const isChanged = emailTypeBefore !== emailTypeAfter
  if (isChanged && zone.emailType !== emailTypeAfter && zone.emailType !== emailTypeBefore) {
    throw revertConflict(`The email type was changed since, to ${zone.emailType}`)
  }
  // The former email type may not suit records that were added later: then the present records decide.
  const isRestored =
    isChanged && emailTypeBefore !== undefined && !validateEmailType(emailTypeBefore, { before: zone, rows })
  return isRestored ? emailTypeBefore : keepEmailType({ before: zone, rows })
}
