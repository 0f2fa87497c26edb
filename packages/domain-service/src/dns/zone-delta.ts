import { isSameRows, keyOf, type Row, subtract, toRecord, type Zone } from './record.ts'

/** What makes one zone of another. */
export interface Delta {
  added: Row[]
  removed: Row[]
  /** The new email type, if it becomes another. */
  emailType?: string | undefined
}

type ZoneContent = Pick<Zone, 'emailType' | 'rows'>

/** What makes `after` of `before`. A zone without email type says nothing about it. */
export const differenceOf = (before: ZoneContent, after: ZoneContent, domain: string): Delta => ({
  added: subtract(after.rows, before.rows, domain),
  removed: subtract(before.rows, after.rows, domain),
  emailType: after.emailType === before.emailType ? undefined : after.emailType,
})

/** The records of a delta. */
export const recordsOf = (
  { added, removed }: Pick<Delta, 'added' | 'removed'>,
  domain: string,
) => ({
  added: added.map((row) => toRecord(row, domain)),
  removed: removed.map((row) => toRecord(row, domain)),
})

export const isEmptyDelta = ({ added, removed, emailType }: Delta) =>
  added.length + removed.length === 0 && emailType === undefined

export const isSameDelta = (one: Delta, other: Delta, domain: string) =>
  isSameRows(one.added, other.added, domain) &&
  isSameRows(one.removed, other.removed, domain) &&
  one.emailType === other.emailType

/** The part of a delta that concerns these rows; the email type stays. */
export const filterDelta = (
  { added, removed, emailType }: Delta,
  isIn: (row: Row) => boolean,
): Delta => ({ added: added.filter(isIn), removed: removed.filter(isIn), emailType })

/** The registrar keeps one row of each key, so an added row takes the place of one that differs in its TTL. */
export function withDelta(zone: ZoneContent, delta: Delta, domain: string): ZoneContent {
  const keys = new Set(delta.added.map((row) => keyOf(row, domain)))
  const kept = subtract(zone.rows, delta.removed, domain)
  return {
    emailType: delta.emailType ?? zone.emailType,
    rows: [...kept.filter((row) => !keys.has(keyOf(row, domain))), ...delta.added],
  }
}
