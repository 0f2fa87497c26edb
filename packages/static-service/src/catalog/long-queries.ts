import type { Sql } from '@domains-and-files/persistence'
import type { DirectoryMove, ListedVersion } from './catalog.ts'
import { findMoveRefusal } from './changes/check-move.ts'
import type { Outcome } from './changes/commands.ts'
import type { FileList, ListQuery, TreeQuery } from './list-query.ts'
import { readTree } from './listing/directory-tree.ts'
import { FileListing } from './listing/list-files.ts'
import { Queries } from './queries.ts'
import { listVersions } from './versions.ts'

/** Queries that take longer than a look-up: in SQLite they run in a thread of their own. */
export interface LongQueries {
  list(query: ListQuery): Promise<FileList>
  /** The tree as JSON; undefined when there is no such directory. */
  tree(query: TreeQuery): Promise<Uint8Array | undefined>
  versions(span: { skip: number; take: number }): Promise<ListedVersion[]>
  /** Why a directory cannot be moved; undefined: it can. */
  findMoveRefusal(move: DirectoryMove): Promise<Outcome | undefined>
  contentPrefixes(): Promise<string[]>
  contents(prefix: string): Promise<{ digest: string; size: number }[]>
}

export function longQueries(database: Sql): LongQueries {
  const listing = new FileListing(database)
  const queries = new Queries(database)
  return {
    list: (query) => listing.list(query),
    tree: (query) => readTree(database, query),
    versions: (span) => listVersions(database, span),
    findMoveRefusal: (move) => findMoveRefusal(database, move),
    contentPrefixes: () => queries.contentPrefixes(),
    contents: (prefix) => queries.contents(prefix),
  }
}
