/**
 * The difference between two sets of records. Pure.
 * @import { HostRecord, RecordInput } from '../api/schema.d.ts'
 * @typedef {{ before: HostRecord, after: HostRecord }} ChangedRecord
 * @typedef {{ added: HostRecord[], removed: HostRecord[], changed: ChangedRecord[] }} ZoneDiff
 */

/**
 * Pairs a removed with an added record of the same name and type as one changed record: first those with the same
 * address, then the rest in order.
 * @param {{ added: readonly HostRecord[], removed: readonly HostRecord[] }} changes
 * @returns {ZoneDiff}
 */
export function pairChanges({ added, removed }) {
  const left = [...added]
  /** @type {ChangedRecord[]} */
  const changed = []
  /** @param {(before: HostRecord, after: HostRecord) => boolean} matches @param {readonly HostRecord[]} records */
  const pair = (matches, records) =>
    records.filter((before) => {
      const after = takeOut(left, (each) => matches(before, each))
      if (after) changed.push({ before, after })
      return !after
    })
  const gone = pair(isSameSet, pair(isSameRecord, removed))
  return { added: left, removed: gone, changed }
}

/** What turns `before` into `after`. @param {readonly HostRecord[]} before @param {readonly HostRecord[]} after */
export function diffZones(before, after) {
  const added = [...after]
  const removed = before.filter((record) => !takeOut(added, (each) => isEqual(each, record)))
  return pairChanges({ added, removed })
}

/** @param {ZoneDiff} diff */
export const isEmptyDiff = ({ added, removed, changed }) =>
  added.length + removed.length + changed.length === 0

/** "MX @ mx1.example.net". @param {RecordInput | undefined} record */
export const describe = (record) =>
  record ? `${record.type} ${record.name} ${record.address}` : 'A record'

/** @param {RecordInput} left @param {RecordInput} right */
export const isSameRecord = (left, right) =>
  isSameSet(left, right) && left.address === right.address

/** @param {RecordInput} left @param {RecordInput} right */
const isSameSet = (left, right) => left.name === right.name && left.type === right.type

/** @param {HostRecord} left @param {HostRecord} right */
const isEqual = (left, right) =>
  isSameRecord(left, right) && left.ttl === right.ttl && left.mx_pref === right.mx_pref

/** @param {HostRecord[]} records @param {(record: HostRecord) => boolean} matches */
function takeOut(records, matches) {
  const at = records.findIndex(matches)
  return at === -1 ? undefined : records.splice(at, 1)[0]
}
