import type { Transaction } from '@domains-and-files/persistence'

/** What the lists that a file is in, and its position in them, depend on besides its path. */
export interface ListedState {
  size: number
  updatedAt: string
  category: string
}

/** A file that a commit changed. */
export interface ChangedFile {
  path: string
  /** Null: there was no file. */
  before: ListedState | null
  /** Null: there is none any more. */
  after: ListedState | null
}

/** For so many revisions of the catalog it is known which files changed. */
export const keptRevisions = 1000

const maxRead = 1000

/**
 * What changed after a revision, up to another that the transaction sees, in no particular order; undefined if it is too
 * much, or if a process did not name it.
 */
export async function readChangedFiles(
  transaction: Transaction,
  { after, upTo }: { after: number; upTo: number },
): Promise<ChangedFile[] | undefined> {
  if (upTo - after > keptRevisions) return undefined
  const rows = await transaction.query<ChangedFile & { revision: number }>(
    `select revision, path, before, after from static_service.changed_paths
     where revision > $1 and revision <= $2 limit ${maxRead + 1}`,
    [after, upTo],
  )
  if (rows.length > maxRead || !rows.every(isKnown)) return undefined
  const revisions = new Set(rows.map(({ revision }) => revision))
  return revisions.size === upTo - after ? rows : undefined
}

// An older version of the service names the paths only.
const isKnown = ({ before, after }: ChangedFile) => before !== null || after !== null
