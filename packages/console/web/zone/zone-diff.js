/**
 * The difference between two sets of records. Pure.
 * @import { HostRecord } from '../api/schema.d.ts'
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
      const at = left.findIndex((after) => matches(before, after))
      const after = left[at]
      if (!after) return true
      left.splice(at, 1)
      changed.push({ before, after })
      return false
    })
  const withoutTwin = pair(isSameSetAndAddress, removed)
  const gone = pair(isSameSet, withoutTwin)
  return { added: left, removed: gone, changed }
}

/** What turns `before` into `after`. @param {readonly HostRecord[]} before @param {readonly HostRecord[]} after */
export function diffZones(before, after) {
  const rest = [...after]
  const removed = before.filter((record) => {
    const at = rest.findIndex((each) => isEqual(each, record))
    if (at === -1) return true
    rest.splice(at, 1)
    return false
  })
  return pairChanges({ added: rest, removed })
}

/** @param {ZoneDiff} diff */
export const isEmptyDiff = ({ added, removed, changed }) =>
  added.length + removed.length + changed.length === 0

/** @param {HostRecord} left @param {HostRecord} right */
const isSameSet = (left, right) => left.name === right.name && left.type === right.type

/** @param {HostRecord} left @param {HostRecord} right */
const isSameSetAndAddress = (left, right) =>
  isSameSet(left, right) && left.address === right.address

/** @param {HostRecord} left @param {HostRecord} right */
const isEqual = (left, right) =>
  isSameSetAndAddress(left, right) && left.ttl === right.ttl && left.mx_pref === right.mx_pref
