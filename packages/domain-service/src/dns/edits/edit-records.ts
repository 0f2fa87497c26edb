import { validationFailed } from '@domains-and-files/http'
import { recordNotFound } from '../../errors.ts'
import { toRecord, type Zone } from '../record.ts'
import type { RecordInput } from '../record-validation.ts'
import { newCandidate, untouched } from './candidate.ts'
import { composeZone } from './compose-zone.ts'
import { patchCandidate } from './patch-record.ts'
import type { BatchEdit, UpdateEdit } from './zone-edit.ts'

/** The zone with one record more. */
export const addRecord = (zone: Zone, record: RecordInput, emailType: string | undefined) =>
  composeZone(
    zone,
    [...zone.rows.map(untouched), newCandidate(record, zone, (field) => `/${field}`)],
    { emailType },
  )

/** The zone without the record of that id. */
export function removeRecord(zone: Zone, id: string): Zone {
  const rows = zone.rows.filter((row) => toRecord(row, zone.domain).id !== id)
  if (rows.length === zone.rows.length) throw recordNotFound(id)
  return composeZone(zone, rows.map(untouched))
}

/** The zone with one record changed. */
export const updateRecord = (zone: Zone, edit: UpdateEdit) =>
  applyPatches(zone, { update: [edit], emailType: edit.emailType, pointer: () => '' })

/** The zone with records removed, changed and added at once. */
export const editBatch = (zone: Zone, edit: BatchEdit) =>
  applyPatches(zone, { ...edit, pointer: (index) => `/update/${index}` })

interface Patches extends Omit<BatchEdit, 'kind'> {
  /** The pointer of an update in the request. */
  pointer: (index: number) => string
}

function applyPatches(zone: Zone, edit: Patches): Zone {
  const { remove = [], update = [], add = [], pointer, emailType } = edit
  const ids = new Map(zone.rows.map((row) => [row, toRecord(row, zone.domain).id]))
  demandKnown(new Set(ids.values()), edit)
  demandOnce(edit)
  const removed = new Set(remove)
  const updates = new Map(update.map(({ id, patch }, index) => [id, { patch, index }]))
  const live = zone.rows.flatMap((row) => {
    const id = ids.get(row) ?? ''
    if (removed.has(id)) return []
    const change = updates.get(id)
    if (!change) return untouched(row)
    updates.delete(id) // Of equal rows, which the registrar itself would collapse, one is changed.
    const base = pointer(change.index)
    return patchCandidate(row, change.patch, { zone, pointer: (field) => `${base}/${field}` })
  })
  const added = add.map((record, index) =>
    newCandidate(record, zone, (field) => `/add/${index}/${field}`),
  )
  return composeZone(zone, [...live, ...added], { emailType })
}

function demandKnown(known: Set<string>, { remove = [], update = [], pointer }: Patches) {
  const named = [
    ...remove.map((id, index) => ({ id, path: `/remove/${index}` })),
    ...update.map(({ id }, index) => ({ id, path: `${pointer(index)}/id` })),
  ]
  const unknown = named.filter(({ id }) => !known.has(id))
  const [first] = unknown
  if (!first) return
  const errors = unknown.map(({ path }) => ({ path, message: 'is not the id of a record' }))
  throw recordNotFound(first.id, errors)
}

function demandOnce({ remove = [], update = [], pointer }: Patches) {
  const removed = new Set(remove)
  const faults = update.flatMap(({ id }, index) => {
    const path = `${pointer(index)}/id`
    if (removed.has(id)) return { path, message: 'is in remove, too' }
    const first = update.findIndex((each) => each.id === id)
    return first < index ? { path, message: `is the same record as ${pointer(first)}` } : []
  })
  if (faults.length > 0) throw validationFailed(faults)
}
