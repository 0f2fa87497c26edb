import { createHash } from 'node:crypto'
import type { FileRow, VersionRow } from '../files/file-record.ts'

/** What a caller asks of the file as it stands: RFC 9110, 13.1.1 and 13.1.2. */
export interface Conditions {
  ifMatch?: string | undefined
  ifNoneMatch?: string | undefined
}

/** The entity tag of a record, which is another after every change of any of its fields. */
export const etagOf = (record: FileRow | VersionRow) =>
  `"${createHash('sha256')
    .update(JSON.stringify(Object.entries(record).sort()))
    .digest('hex')
    .slice(0, 32)}"`

/** Whether a cached answer with this tag is still good: weak comparison. */
export const isCurrent = (ifNoneMatch: string | undefined, etag: string) =>
  ifNoneMatch !== undefined &&
  (ifNoneMatch.trim() === '*' ||
    tagsOf(ifNoneMatch).some((tag) => tag.replace(/^W\//, '') === etag))

/** Whether the file that is there, if any, is what the caller asks for, named by the tag of its record or its content. */
export function holds({ ifMatch, ifNoneMatch }: Conditions, row: FileRow | undefined): boolean {
  if (ifMatch !== undefined) {
    if (!row) return false
    if (ifMatch.trim() !== '*' && !tagsOf(ifMatch).some((tag) => tagsFor(row).includes(tag))) {
      return false
    }
  }
  if (ifNoneMatch === undefined || !row) return true
  return !tagsFor(row).some((tag) => isCurrent(ifNoneMatch, tag))
}

const tagsFor = (row: FileRow) => [etagOf(row), `"${row.digest}"`]

// A comma may stand inside a tag (RFC 9110, 8.8.3).
const tagsOf = (list: string) => list.match(/(?:W\/)?"[^"]*"/g) ?? []
