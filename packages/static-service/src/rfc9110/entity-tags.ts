import { hash } from 'node:crypto'
import type { TagList } from '@domains-and-files/http'
import type { FileRow, VersionRow } from '../files/file-record.ts'

/** Preconditions on the stored file (RFC 9110, 13.1.1 and 13.1.2), as `readIfMatch` and `readIfNoneMatch` give them. */
export interface Conditions {
  ifMatch?: TagList | undefined
  ifNoneMatch?: TagList | undefined
}

/** The entity tag of a record, which is another after every change of any of its fields. */
export function etagOf(record: FileRow | VersionRow): string {
  const fields = Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1))
  return `"${hash('sha256', JSON.stringify(fields)).slice(0, 32)}"`
}

/** Whether the stored file, if any, meets the conditions; they name the tag of its record or of its content. */
export function holds({ ifMatch, ifNoneMatch }: Conditions, row: FileRow | undefined): boolean {
  const isNamedBy = (list: TagList) =>
    row !== undefined && (list === '*' || tagsFor(row).some((tag) => list.includes(tag)))
  if (ifMatch !== undefined && !isNamedBy(ifMatch)) return false
  return ifNoneMatch === undefined || !isNamedBy(ifNoneMatch)
}

const tagsFor = (row: FileRow) => [etagOf(row), `"${row.digest}"`]
