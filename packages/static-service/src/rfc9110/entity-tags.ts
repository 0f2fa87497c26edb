import { hash } from 'node:crypto'
import type { TagList } from '@domains-and-files/http'
import type { FileRow, VersionRow } from '../files/file-record.ts'

/** Preconditions on the stored file (RFC 9110, 13.1), as `readIfMatch`, `readIfNoneMatch` and `readHttpDate` give them. */
export interface Conditions {
  ifMatch?: TagList | undefined
  ifNoneMatch?: TagList | undefined
  /** In seconds since 1970. */
  ifUnmodifiedSince?: number | undefined
}

/** The entity tag of a record: it changes with every field, and differs while the file is private. */
export function etagOf(record: FileRow | VersionRow, isPublic = true): string {
  const fields = Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1))
  return `"${hash('sha256', JSON.stringify(fields)).slice(0, 32)}${isPublic ? '' : '-private'}"`
}

/**
 * Whether the stored file, if any, meets the conditions (RFC 9110, 13.2.2). Matches the tags of its record and of its
 * bytes; without a file, dates are not compared.
 */
export function holds(
  { ifMatch, ifNoneMatch, ifUnmodifiedSince }: Conditions,
  row: FileRow | undefined,
): boolean {
  const isNamedBy = (list: TagList) =>
    row !== undefined && (list === '*' || tagsFor(row).some((tag) => list.includes(tag)))
  if (ifMatch !== undefined && !isNamedBy(ifMatch)) return false
  if (ifMatch === undefined && ifUnmodifiedSince !== undefined && row) {
    if (Math.floor(Date.parse(row.updatedAt) / 1000) > ifUnmodifiedSince) return false
  }
  return ifNoneMatch === undefined || !isNamedBy(ifNoneMatch)
}

const tagsFor = (row: FileRow) => [etagOf(row), etagOf(row, false), `"${row.digest}"`]
