import type { Transaction } from '@domains-and-files/persistence'

/** For so many revisions of the catalog it is known which files changed. */
export const keptRevisions = 1000

const maxRead = 1000

/**
 * Paths of all files that changed after a revision, up to another that the transaction sees; undefined if they are too many,
 * or if a process did not name them.
 */
export async function readChangedPaths(
  transaction: Transaction,
  { after, upTo }: { after: number; upTo: number },
): Promise<string[] | undefined> {
  if (upTo - after > keptRevisions) return undefined
  const rows = await transaction.query<{ revision: number; path: string }>(
    `select revision, path from static_service.changed_paths where revision > $1 and revision <= $2
     limit ${maxRead + 1}`,
    [after, upTo],
  )
  if (rows.length > maxRead || rows.some(({ path }) => path === '')) return undefined
  const revisions = new Set(rows.map(({ revision }) => revision))
  return revisions.size === upTo - after ? rows.map(({ path }) => path) : undefined
}
