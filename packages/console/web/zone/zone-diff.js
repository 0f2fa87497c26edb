import { toUnicode } from '../ui/format.js'

/**
 * The difference between two sets of records. Pure.
 * @typedef {{ before: Api.HostRecord, after: Api.HostRecord }} ChangedRecord
 * @typedef {{ added: Api.HostRecord[], removed: Api.HostRecord[], changed: ChangedRecord[] }} ZoneDiff
 */

/**
 * Pairs a removed with an added record of the same name and type as one changed record: first those with the same
 * address, then the rest in order.
 * @param {{ added: readonly Api.HostRecord[], removed: readonly Api.HostRecord[] }} changes
 */
export function pairChanges({ added, removed }) {
  const left = [...added]
  /** @type {ChangedRecord[]} */
  const changed = []
  /** @param {(before: Api.HostRecord, after: Api.HostRecord) => boolean} matches @param {readonly Api.HostRecord[]} records */
  const pair = (matches, records) =>
    records.filter((before) => {
      const after = takeOut(left, (each) => matches(before, each))
      if (after) changed.push({ before, after })
      return !after
    })
  const gone = pair(isSameSet, pair(isSameRecord, removed))
  return { added: left, removed: gone, changed }
}

/** What turns `before` into `after`. @param {readonly Api.HostRecord[]} before @param {readonly Api.HostRecord[]} after */
export function diffZones(before, after) {
  const added = [...after]
  const removed = before.filter((record) => !takeOut(added, (each) => isEqual(each, record)))
  return pairChanges({ added, removed })
}

/** @param {ZoneDiff} diff */
export const isEmptyDiff = ({ added, removed, changed }) => added.length + removed.length + changed.length === 0

/** "MX @ mx1.example.net". @param {Api.RecordInput | undefined} record */
export const describe = (record) => (record ? `${record.type} ${record.name} ${record.address}` : 'A record')

/** @param {Api.RecordInput} left @param {Api.RecordInput} right */
export const isSameRecord = (left, right) => isSameSet(left, right) && left.address === right.address

/** @param {Api.RecordInput} left @param {Api.RecordInput} right */
const isSameSet = (left, right) => left.name === right.name && left.type === right.type

/** @param {Api.HostRecord} left @param {Api.HostRecord} right */
const isEqual = (left, right) => isSameRecord(left, right) && left.ttl === right.ttl && left.mx_pref === right.mx_pref

/** @param {Api.HostRecord[]} records @param {(record: Api.HostRecord) => boolean} matches */
function takeOut(records, matches) {
  const at = records.findIndex(matches)
  return at === -1 ? undefined : records.splice(at, 1)[0]
}

/**
 * Whether the full name, type and value of a record have all of these words.
 * @param {{ name: string, type: string, address: string }} record
 * @param {string} domain
 * @param {string} words
 */
export function matchesRecord({ name, type, address }, domain, words) {
  const full = name === '@' ? `@ ${domain}` : `${name}.${domain}`
  const text = toUnicode(`${full} ${type} ${address}`).toLowerCase()
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(toUnicode(word)))
}
