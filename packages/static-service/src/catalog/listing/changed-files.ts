import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'

/** What the lists that a file is in, and its position in them, depend on besides its path. */
export interface ListedState {
  size: number
  updatedAt: string
  category: string
}

/** A file that a change of the catalog changed. */
export interface ChangedFile {
  path: string
  /** Null: there was no file. */
  before: ListedState | null
  /** Null: there is none any more. */
  after: ListedState | null
}

/** For so many changes of the catalog it is known which files they changed. */
export const keptChanges = 1000

const maxRead = 1000

/**
 * What changed after a change, up to another that the transaction sees, in no particular order; undefined if it is too
 * much, or not known.
 */
export async function readChangedFiles(
  transaction: SqlTransaction,
  { after, upTo }: { after: number; upTo: number },
): Promise<ChangedFile[] | undefined> {
  if (upTo - after > keptChanges) return undefined
  const rows = await transaction.all<ChangedRow>(
    sql`select change_id "changeId", path, before, after from ${name('changed_files')}
      where change_id > ${after} and change_id <= ${upTo} limit ${maxRead + 1}`,
  )
  if (rows.length > maxRead || rows.some(({ before, after }) => !before && !after)) return undefined
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
