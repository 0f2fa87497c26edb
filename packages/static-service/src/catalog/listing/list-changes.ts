import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { fold, parentOf } from '../../files/file-path.ts'
import { type OrderName, orders, type SortedFile } from '../list-query.ts'

/** The filter of a list: the first fields of `keyOf`. */
export type ListedFiles = [
  search: string | null,
  category: string | null,
  prefix: string | null,
  recursive: boolean | null,
]

/** A changed file, as lists see it. */
type ListChange = ChangedFile & { folded: string }

export const withFolded = (changed: ChangedFile[]): ListChange[] =>
  changed.map((file) => ({ ...file, folded: fold(file.path) }))

/** Whether a list contains, or contained, one of the files. */
export const concern = (files: ListChange[], list: ListedFiles): boolean =>
  files.some((file) => isIn(list, file, file.before) || isIn(list, file, file.after))

/** By how many rows the position of a file in a list has moved, whether the file still exists or not. */
export function shiftsIn(files: ListChange[], list: ListedFiles, order: OrderName) {
  const listed = (side: 'before' | 'after') =>
    files.flatMap((file) => {
      const state = file[side]
      return isIn(list, file, state) ? { path: file.path, ...state } : []
    })
  const [removed, added] = [listed('before'), listed('after')]
  return (row: SortedFile): number => {
    const isBefore = (file: SortedFile) => orders[order].precedes(file, row)
    return added.filter(isBefore).length - removed.filter(isBefore).length
  }
}

function isIn(
  [search, category, prefix, recursive]: ListedFiles,
  { path, folded }: { path: string; folded: string },
  state: ListedState | null,
): state is ListedState {
  if (!state || (category && state.category !== category)) return false
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}

/** The fields that, besides the path, decide in which lists a file is, and where. */
export interface ListedState {
  size: number
  updatedAt: string
  category: string
}

/** A file as a change found or left it. */
export interface RecordedState extends ListedState {
  digest: string
  contentType: string
}

/** A file that a change of the catalog changed. */
export interface ChangedFile {
  path: string
  /** Null: there was no file. */
  before: ListedState | null
  /** Null: the file was removed. */
  after: ListedState | null
}

const [maxChanges, maxRead] = [1000, 1000]

/**
 * What changed after a change, up to another that the transaction sees, in no particular order; undefined if it is too
 * much, or not known.
 */
export async function readChangedFiles(
  transaction: SqlTransaction,
  { after, upTo }: { after: number; upTo: number },
): Promise<ChangedFile[] | undefined> {
  if (upTo - after > maxChanges) return undefined
  const rows = await transaction.all<ChangedRow>(
    sql`select change_id "changeId", path, before, after from ${name('changed_files')}
      where change_id > ${after} and change_id <= ${upTo} limit ${maxRead + 1}`,
  )
  if (rows.length > maxRead || rows.some(({ before, after }) => !before && !after)) return undefined
  // A slice of a change, or files of a restore, have numbers without rows.
  const changes = new Set(rows.map(({ changeId }) => changeId))
  return changes.size === upTo - after ? rows.map(toChangedFile) : undefined
}

interface ChangedRow {
  changeId: number
  path: string
  before: string | null
  after: string | null
}

const toChangedFile = ({ path, before, after }: ChangedRow): ChangedFile => ({
  path,
  before: before && JSON.parse(before),
  after: after && JSON.parse(after),
})
