import type { Sql } from '@domains-and-files/persistence'
import type { FileRow, ListedVersion } from '../files/file-record.ts'
import type { CatalogStatus, ContentReader, RulesCheck, Usage } from './catalog.ts'
import type { CatalogCommand, DirectoryMove, Outcome } from './changes/commands.ts'
import { findMoveRefusal, type SliceLimits } from './changes/directory-changes.ts'
import type { HistoryRules } from './changes/prune-past.ts'
import { type HistoryReads, historyReads } from './history/past-files.ts'
import type { FileList, ListQuery, TreeQuery } from './list-query.ts'
import { readTree } from './listing/directory-tree.ts'
import { FileListing } from './listing/list-files.ts'
import {
  type OpenedTree,
  openTree,
  readTreePage,
  type TreeFile,
  type TreePageQuery,
  type TreeQueryAt,
} from './listing/tree-files.ts'
import { Queries } from './queries.ts'
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
export interface LongQueries extends HistoryReads {
  list(query: ListQuery): Promise<FileList>
  /** The tree as JSON; undefined when there is no such directory. */
  tree(query: TreeQuery): Promise<Uint8Array | undefined>
  usage(directory: string): Promise<Usage>
  openTree(query: TreeQueryAt): Promise<OpenedTree | undefined>
  treePage(query: TreePageQuery): Promise<TreeFile[]>
  versions(span: { skip: number; take: number }): Promise<ListedVersion[]>
  /** Why a directory cannot be moved; undefined: it can. */
  findMoveRefusal(move: DirectoryMove): Promise<Outcome | undefined>
  contentPrefixes(): Promise<string[]>
  contents(prefix: string): Promise<{ digest: string; size: number }[]>
  contentSizes(query: ContentReader & { digests: string[] }): Promise<Map<string, number>>
}

export function longQueries(database: Sql): LongQueries {
  const listing = new FileListing(database)
  const queries = new Queries(database)
  return {
    list: (query) => listing.list(query),
    tree: (query) => readTree(database, query),
    usage: (directory) =>
      database.snapshot((transaction) => new Queries(transaction).usage(directory)),
    openTree: (query) => openTree(database, query),
    treePage: (query) => readTreePage(database, query),
    versions: (span) => listVersions(database, span),
    ...historyReads(database),
    findMoveRefusal: (move) => findMoveRefusal(database, move),
    contentPrefixes: () => queries.contentPrefixes(),
    contents: (prefix) => queries.contents(prefix),
    contentSizes: ({ digests, ...reader }) => queries.contentSizes(digests, reader),
  }
}
