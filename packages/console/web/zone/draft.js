import { pairChanges } from './zone-diff.js'

/**
 * A draft: edits of a zone that are gathered here and sent together. Pure; drafts are never changed, only replaced.
 *
 * @import { HostRecord, RecordInput, Zone, ZonePatch } from '../api/schema.d.ts'
 * @typedef {{ name?: string, address?: string, ttl?: number, mx_pref?: number }} RecordEdit
 * @typedef {{ key: number, record: RecordInput }} Addition
 * @typedef {{ removed: readonly string[], updated: ReadonlyMap<string, RecordEdit>, added: readonly Addition[],
 *   emailType?: string, nextKey: number }} Draft
 * @typedef {'kept' | 'added' | 'updated' | 'removed'} RowState
 * @typedef {{ key: string, state: RowState, record: RecordInput, original?: HostRecord }} DraftRow
 */

/** @type {Draft} */
export const emptyDraft = { removed: [], updated: new Map(), added: [], nextKey: 1 }

/** @param {Draft} draft */
export const countEdits = ({ removed, updated, added, emailType }) =>
  removed.length + updated.size + added.length + (emailType === undefined ? 0 : 1)

/** @param {Draft} draft @param {RecordInput} record @returns {Draft} */
export const addRecord = (draft, record) => ({
  ...draft,
  added: [...draft.added, { key: draft.nextKey, record }],
  nextKey: draft.nextKey + 1,
})

/** @param {Draft} draft @param {string} id @returns {Draft} */
export function removeRecord(draft, id) {
  const updated = new Map(draft.updated)
  updated.delete(id)
  return { ...draft, updated, removed: [...draft.removed.filter((each) => each !== id), id] }
}

/**
 * Replaces the record of a row: an added one becomes the new record, a live one gets an edit of the fields that
 * differ. An edit that changes nothing is dropped.
 * @param {Draft} draft
 * @param {DraftRow} row
 * @param {RecordInput} record
 * @returns {Draft}
 */
export function editRow(draft, row, record) {
  const { original } = row
  if (!original) {
    const added = draft.added.map((each) =>
      keyOfAddition(each) === row.key ? { ...each, record } : each,
    )
    return { ...draft, added }
  }
  const updated = new Map(draft.updated)
  const edit = differenceOf(original, record)
  if (Object.keys(edit).length === 0) updated.delete(original.id)
  else updated.set(original.id, edit)
  return { ...draft, updated, removed: draft.removed.filter((id) => id !== original.id) }
}

/**
 * Adds what a dry run would change, so that it can be seen among the records before it is sent.
 * @param {Draft} draft
 * @param {{ added: readonly HostRecord[], removed: readonly HostRecord[] }} changes
 * @returns {Draft}
 */
export function addChanges(draft, changes) {
  const { added, removed, changed } = pairChanges(changes)
  let next = draft
  for (const { id } of removed) next = removeRecord(next, id)
  for (const { before, after } of changed) {
    next = editRow(next, { key: before.id, state: 'kept', record: before, original: before }, after)
  }
  for (const { id: _, ...record } of added) next = addRecord(next, record)
  return next
}

/** Takes back what the draft does to one row. @param {Draft} draft @param {DraftRow} row @returns {Draft} */
export function resetRow(draft, row) {
  const updated = new Map(draft.updated)
  updated.delete(row.original?.id ?? '')
  return {
    ...draft,
    updated,
    removed: draft.removed.filter((id) => id !== row.original?.id),
    added: draft.added.filter((each) => keyOfAddition(each) !== row.key),
  }
}

/**
 * The zone as the draft would leave it, with removed rows still shown; additions come first.
 * @param {Zone} zone
 * @param {Draft} draft
 * @returns {DraftRow[]}
 */
export function rowsOf(zone, draft) {
  const live = zone.hosts.map((original) => {
    const edit = draft.updated.get(original.id)
    const state = draft.removed.includes(original.id) ? 'removed' : edit ? 'updated' : 'kept'
    /** @type {DraftRow} */
    const row = { key: original.id, state, record: { ...original, ...edit }, original }
    return row
  })
  const added = draft.added.map((each) => {
    /** @type {DraftRow} */
    const row = { key: keyOfAddition(each), state: 'added', record: each.record }
    return row
  })
  return [...added.reverse(), ...live]
}

/** The body of the PATCH that carries out the draft. @param {Draft} draft @returns {ZonePatch} */
export function toPatch({ removed, updated, added, emailType }) {
  /** @type {ZonePatch} */
  const patch = {}
  if (removed.length > 0) patch.remove = [...removed]
  if (updated.size > 0) patch.update = [...updated].map(([id, edit]) => ({ id, ...edit }))
  if (added.length > 0) patch.add = added.map(({ record }) => record)
  // From the list of the form.
  if (emailType !== undefined) patch.email_type = /** @type {ZonePatch['email_type']} */ (emailType)
  return patch
}

/**
 * Carries a draft over to a zone that somebody else changed meanwhile. What can no longer be done as it was meant is
 * said in `notes`: an edited record that is gone becomes an addition; what is already so is dropped. A record that both
 * changed is a conflict, and left as it is there until it is settled.
 * @typedef {{ mine: RecordInput, theirs: HostRecord }} Conflict
 * @param {Draft} draft
 * @param {Zone} base the zone that the draft was made for
 * @param {Zone} zone
 * @returns {{ draft: Draft, notes: string[], conflicts: Conflict[] }}
 */
export function rebase(draft, base, zone) {
  const live = new Set(zone.hosts.map(({ id }) => id))
  const known = new Set(base.hosts.map(({ id }) => id))
  const arrived = zone.hosts.filter(({ id }) => !known.has(id))
  /** @type {string[]} */
  const notes = []
  /** @type {Conflict[]} */
  const conflicts = []
  for (const id of draft.removed.filter((each) => !live.has(each)))
    notes.push(`${describe(base.hosts.find((record) => record.id === id))} is already gone.`)
  const updated = new Map([...draft.updated].filter(([id]) => live.has(id)))
  /** @type {Draft} */
  let next = { ...draft, updated, removed: draft.removed.filter((id) => live.has(id)) }
  for (const [id, edit] of draft.updated) {
    const original = base.hosts.find((record) => record.id === id)
    if (live.has(id) || !original) continue
    const { id: _, ...mine } = { ...original, ...edit }
    const at = arrived.findIndex(
      ({ name, type }) => name === original.name && type === original.type,
    )
    const [theirs] = at === -1 ? [] : arrived.splice(at, 1)
    if (theirs) conflicts.push({ mine, theirs })
    else {
      next = addRecord(next, mine)
      notes.push(`${describe(original)} was removed meanwhile: your version of it will be added.`)
    }
  }
  const isThere = (/** @type {Addition} */ { record }) =>
    zone.hosts.some((each) => isSameRecord(each, record))
  for (const { record } of next.added.filter(isThere))
    notes.push(`${describe(record)} is already there.`)
  return {
    draft: { ...next, added: next.added.filter((each) => !isThere(each)) },
    notes,
    conflicts,
  }
}

/** Which record remains of a conflict. @param {Draft} draft @param {Conflict} conflict @param {'mine' | 'theirs' | 'both'} choice */
export function settle(draft, { mine, theirs }, choice) {
  if (choice === 'theirs') return draft
  if (choice === 'both') return addRecord(draft, mine)
  return editRow(draft, { key: theirs.id, state: 'kept', record: theirs, original: theirs }, mine)
}

/** "MX @ mx1.example.net". @param {RecordInput | undefined} record */
export const describe = (record) =>
  record ? `${record.type} ${record.name} ${record.address}` : 'A record'

/** @param {RecordInput} left @param {RecordInput} right */
export const isSameRecord = (left, right) =>
  left.name === right.name && left.type === right.type && left.address === right.address

/** @param {Addition} addition */
const keyOfAddition = ({ key }) => `new-${key}`

/** @param {HostRecord} original @param {RecordInput} record */
function differenceOf(original, record) {
  /** @type {RecordEdit} */
  const edit = {}
  if (record.name !== original.name) edit.name = record.name
  if (record.address !== original.address) edit.address = record.address
  if (record.ttl !== undefined && record.ttl !== original.ttl) edit.ttl = record.ttl
  if (record.mx_pref !== undefined && record.mx_pref !== original.mx_pref)
    edit.mx_pref = record.mx_pref
  return edit
}
