import type { Sql } from '@domains-and-files/persistence'
import type { FileRow } from '../files/file-record.ts'
import type { CatalogCommand, DirectoryMove, Outcome } from './changes/commands.ts'
import { findMoveRefusal, type SliceLimits } from './changes/directory-changes.ts'
import type { HistoryRules } from './changes/prune-past.ts'
import { historyReads } from './history/past-files.ts'
import type { ListQuery, TreeQuery } from './list-query.ts'
import { readTree } from './listing/directory-tree.ts'
import { FileListing } from './listing/list-files.ts'
import {
  openTree,
  readTreePage,
  type TreePageQuery,
  type TreeQueryAt,
} from './listing/tree-files.ts'
import { type ContentReader, Queries, type Totals } from './queries.ts'
import { listVersions } from './versions.ts'

/** What differs between the databases: where changes and long queries run, and how a file is found. */
export interface CatalogDatabase {
  /** Whether only this process changes the catalog. */
  readonly isExclusive: boolean
  /** For look-ups by key. */
  readonly sql: Sql
  /** One outcome per command, in order, each command done whole or not at all. */
  commit(commands: CatalogCommand[]): Promise<Outcome[]>
  readonly long: LongQueries
  find(path: string): Promise<FileRow | undefined>
  findNow?(path: string): FileRow | undefined
  /** As `Catalog.checkRules`. */
  checkRules?(check: RulesCheck): void
  status(): CatalogStatus
  /** Queries that wait for an answer. */
  readonly waiting: number
  close(): Promise<void>
}

export interface CatalogStatus {
  /** Whether the database answers. */
  isAvailable: boolean
  /** Counters as they are now, or as the last probe found them; undefined where they cannot be read. */
  totals: Totals | undefined
  /** The newest version record; null where none is known. */
  newestVersion: string | null
}

/** Called with the version of the access rules; a promise where newer ones must be loaded. */
export type RulesCheck = (version: number) => Promise<void> | undefined

export interface CatalogOptions {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  quotaBytes?: number | undefined
  /** How many files a change of a directory has in one transaction. */
  limits?: SliceLimits | undefined
  history?: HistoryRules | undefined
  /** A command beside services, or in place of them: it does nothing in the background. */
  isCommand?: boolean
}

/** Queries that take longer than a look-up: in SQLite they run in a thread of their own. */
export type LongQueries = ReturnType<typeof longQueries>

export function longQueries(database: Sql) {
  const listing = new FileListing(database)
  const queries = new Queries(database)
  return {
    list: (query: ListQuery) => listing.list(query),
    /** The tree as JSON; undefined when there is no such directory. */
    tree: (query: TreeQuery) => readTree(database, query),
    usage: (directory: string) =>
      database.snapshot((transaction) => new Queries(transaction).usage(directory)),
    openTree: (query: TreeQueryAt) => openTree(database, query),
    treePage: (query: TreePageQuery) => readTreePage(database, query),
    versions: (span: { skip: number; take: number }) => listVersions(database, span),
    ...historyReads(database),
    /** Why a directory cannot be moved; undefined: it can. */
    findMoveRefusal: (move: DirectoryMove) => findMoveRefusal(database, move),
    contentPrefixes: () => queries.contentPrefixes(),
    contents: (prefix: string) => queries.contents(prefix),
    contentSizes: ({ digests, ...reader }: ContentReader & { digests: string[] }) =>
      queries.contentSizes(digests, reader),
  }
}
