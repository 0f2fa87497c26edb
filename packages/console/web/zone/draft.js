import { describe, isSameRecord, pairChanges } from './zone-diff.js'

/**
 * A draft: what becomes of records of a zone, gathered here and sent together. Pure; drafts are replaced, never changed.
 *
 * @typedef {{ records: Readonly<Record<string, Api.RecordInput | null>>, emailType?: string }} Draft by the record's id, or by
 *   `new-1` and so on where one is added; null: it is removed
 * @typedef {{ added: readonly Api.HostRecord[], removed: readonly Api.HostRecord[] }} Changes
 * @typedef {'kept' | 'added' | 'updated' | 'removed' | 'waiting' | 'leaving'} RowState `waiting`, `leaving`: queued to be
 *   added and removed
 * @typedef {ReturnType<typeof rowOf>} DraftRow
 * @typedef {{ mine: Api.RecordInput | null, theirs: Api.HostRecord, choice: 'mine' | 'theirs' | 'both' }} Conflict a record that
 *   both changed; null: that one of them removed and the other changed
 */

/** @type {Draft} */
export const emptyDraft = { records: {} }

/** @param {Draft} draft */
export const countEdits = ({ records, emailType }) => Object.keys(records).length + (emailType === undefined ? 0 : 1)

/**
 * @param {Draft} draft
 * @param {string} key
 * @param {Api.RecordInput | null} [record] null: removed; undefined: as it is live
 */
export function setRecord(draft, key, record) {
  const { [key]: _, ...others } = draft.records
  const changed = { ...draft.records, [key]: record ? withoutId(record) : null }
  return { ...draft, records: record === undefined ? others : changed }
}

/** @param {Draft} draft @param {Api.RecordInput} record @returns {Draft} */
export function addRecord(draft, record) {
  let number = 1
  while (`new-${number}` in draft.records) number += 1
  return setRecord(draft, `new-${number}`, record)
}

/** An edit that changes nothing is dropped. @param {Draft} draft @param {DraftRow} row @param {Api.RecordInput} record */
export function editRow(draft, { key, original }, record) {
  const isChanged = !original || Object.keys(differenceOf(original, record)).length > 0
  return setRecord(draft, key, isChanged ? record : undefined)
}

/**
 * Takes up what a dry run would change. What the draft adds already is not added twice.
 * @param {Draft} draft
 * @param {Changes} changes
 */
export function addChanges(draft, changes) {
  const { added, removed, changed } = pairChanges(changes)
  let next = draft
  for (const { id } of removed) next = setRecord(next, id, null)
  for (const { before, after } of changed) next = setRecord(next, before.id, after)
  for (const record of added) {
    const isKnown = Object.values(next.records).some((each) => each && isSameRecord(each, record))
    if (!isKnown) next = addRecord(next, record)
  }
  return next
}

/**
 * The zone as the draft, and changes that are queued, would leave it. Removed rows are still shown; additions come first.
 * @param {Api.Zone} zone
 * @param {Draft} draft
 * @param {Changes} [queued]
 */
export function rowsOf(zone, { records }, queued = { added: [], removed: [] }) {
  const isLeaving = new Set(queued.removed.map(({ id }) => id))
  const live = new Set(zone.hosts.map(({ id }) => id))
  const added = Object.entries(records).filter(([key]) => key.startsWith('new-'))
  const waiting = queued.added.filter(({ id }) => !live.has(id))
  return [
    ...added.reverse().flatMap(([key, record]) => (record ? [rowOf(key, 'added', record)] : [])),
    ...waiting.map((record) => rowOf(record.id, 'waiting', record)),
    ...zone.hosts.map((original) => {
      const { id: key } = original
      const edit = records[key]
      if (edit) return rowOf(key, 'updated', edit, original)
      const kept = isLeaving.has(key) ? 'leaving' : 'kept'
      return rowOf(key, edit === null ? 'removed' : kept, original, original)
    }),
  ]
}

/** @param {string} key @param {RowState} state @param {Api.RecordInput} record @param {Api.HostRecord} [original] */
export const rowOf = (key, state, record, original) => ({ key, state, record, original })

/** The body of the PATCH that carries out the draft. @param {Draft} draft @param {Api.Zone} zone @returns {Api.ZonePatch} */
export function toPatch({ records, emailType }, zone) {
  /** @type {Required<Pick<Api.ZonePatch, 'remove' | 'update' | 'add'>>} */
  const patch = { remove: [], update: [], add: [] }
  for (const [id, record] of Object.entries(records)) {
    const original = zone.hosts.find((each) => each.id === id)
    if (!record) patch.remove.push(id)
    else if (original) patch.update.push({ id, ...differenceOf(original, record) })
    else patch.add.push(record)
  }
  // From the list of the form.
  return { ...patch, email_type: /** @type {Api.ZonePatch['email_type']} */ (emailType) }
}

/**
 * Carries a draft over to a zone that somebody else changed meanwhile. What can no longer be done as it was meant is
 * said in `notes`: an edited record that is gone becomes an addition; what is already so is dropped. A record that both
 * changed is a conflict, and stays as it is there until it is settled.
 * @param {Draft} draft
 * @param {Api.Zone} base the zone that the draft was made for
 * @param {Api.Zone} zone
 */
export function rebase(draft, base, zone) {
  const live = new Set(zone.hosts.map(({ id }) => id))
  const known = new Map(base.hosts.map((record) => [record.id, record]))
  const arrived = zone.hosts.filter(({ id }) => !known.has(id))
  /** @type {string[]} */
  const notes = []
  /** @type {Conflict[]} */
  const conflicts = []
  let next = draft
  for (const [key, mine] of Object.entries(draft.records)) {
    if (live.has(key)) continue
    const original = known.get(key)
    const at = arrived.findIndex(({ name, type }) => name === original?.name && type === original.type)
    const [theirs] = at >= 0 ? arrived.splice(at, 1) : []
    const isThere = mine && zone.hosts.some((each) => isSameRecord(each, mine))
    if (!original && !isThere) continue
    next = setRecord(next, key)
    if (isThere) notes.push(`${describe(mine)} is already there.`)
    else if (theirs) conflicts.push({ mine, theirs, choice: mine ? 'mine' : 'theirs' })
    else if (!mine) notes.push(`${describe(original)} is already gone.`)
    else {
      next = addRecord(next, mine)
      notes.push(`${describe(original)} was removed meanwhile: your version of it will be added.`)
    }
  }
  return { draft: next, notes, conflicts }
}

/** Decides conflicts: the person's version, the one that is there, or both. @param {Draft} draft @param {Conflict[]} conflicts */
export const settle = (draft, conflicts) =>
  conflicts.reduce((each, { mine, theirs, choice }) => {
    if (choice === 'theirs') return each
    return mine && choice === 'both' ? addRecord(each, mine) : setRecord(each, theirs.id, mine)
  }, draft)

/** @param {Api.RecordInput & { id?: string }} record @returns {Api.RecordInput} */
const withoutId = ({ id: _, ...record }) => record

/** @param {Api.HostRecord} original @param {Api.RecordInput} record @returns {Partial<Api.RecordInput>} */
const differenceOf = (original, { name, address, ttl, mx_pref: pref }) => ({
  ...(name !== original.name && { name }),
  ...(address !== original.address && { address }),
  ...(ttl !== undefined && ttl !== original.ttl && { ttl }),
  ...(pref !== undefined && pref !== original.mx_pref && { mx_pref: pref }),
})
