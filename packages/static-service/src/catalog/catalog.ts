import type { Sql, Table } from '@domains-and-files/persistence'
import { pathConflict, preconditionFailed, quotaExceeded } from '../errors.ts'
import type { FileRow, ListedVersion } from '../files/file-record.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import { readCatalog } from './archive.ts'
import { CatalogChanges } from './catalog-changes.ts'
import type {
  CatalogDatabase,
  CatalogOptions,
  CatalogStatus,
  RulesCheck,
} from './catalog-database.ts'
import { findMiscounts, type Miscount } from './find-miscounts.ts'
import type { HistoryReads } from './history/past-files.ts'
import type { FileList, ListQuery, TreeQuery } from './list-query.ts'
import type { OpenedTree, TreeFile, TreePageQuery, TreeQueryAt } from './listing/tree-files.ts'
import type { ContentReader, SizeRange, Usage } from './queries.ts'

/** Which file is at which path, and was, and the version records. A change is durable when its promise resolves. */
export class Catalog extends CatalogChanges {
  readonly #database: CatalogDatabase

  constructor(database: CatalogDatabase, options: CatalogOptions) {
    super(database, options)
    this.#database = database
  }

  /**
   * Whether only this process changes the catalog. Then a file may be remembered until `onChange` names its path; else
   * it is read for each request.
   */
  get isExclusive(): boolean {
    return this.#database.isExclusive
  }

  override find(path: string): Promise<FileRow | undefined> {
    return this.#database.find(path)
  }

  /** As `find`; undefined also where a look-up needs waiting. */
  findNow(path: string): FileRow | undefined {
    return this.#database.findNow?.(path)
  }

  /**
   * From now on a file is found after `check` of the version of the access rules that its look-up read; only where other
   * processes change them.
   */
  checkRules(check: RulesCheck): void {
    this.#database.checkRules?.(check)
  }

  /**
   * Checks whether `put` of one file would be refused now, before its content has arrived.
   * @throws {HttpError} `path_conflict` or `precondition_failed`.
   */
  async checkPut(path: string, conditions: Conditions): Promise<void> {
    const { row, conflicts } = await this.findTarget(path)
    if (!row && conflicts) throw pathConflict(path)
    if (!holds(conditions, row)) throw preconditionFailed(path)
  }

  /**
   * Checks whether `put` of a content of a size in this range would certainly exceed the quota now.
   * @throws {HttpError} `quota_exceeded`.
   */
  async checkQuota(path: string, size: SizeRange): Promise<void> {
    const quota = this.quotaBytes
    if (quota === undefined) return
    const { storedSize, hasSize, freed } = await this.readQuota(path, size)
    if (storedSize + size.minBytes <= quota) return
    // It may equal a stored content, which takes no more room, or replace one.
    if (hasSize) return
    if (storedSize - freed + size.minBytes > quota) throw quotaExceeded(quota)
  }

  list(query: ListQuery): Promise<FileList> {
    return this.#database.long.list(query)
  }

  /** The tree as JSON; undefined when there is no such directory. */
  tree(query: TreeQuery): Promise<Uint8Array | undefined> {
    return this.#database.long.tree(query)
  }

  override usage(directory: string): Promise<Usage> {
    return directory === '' ? super.usage('') : this.#database.long.usage(directory)
  }

  /**
   * All files below a directory, as a change left them, or as they are now; the root is empty. Undefined: there is no such
   * change yet.
   */
  openTree(query: TreeQueryAt): Promise<OpenedTree | undefined> {
    return this.#database.long.openTree(query)
  }

  readTreePage(query: TreePageQuery): Promise<TreeFile[]> {
    return this.#database.long.treePage(query)
  }

  /** Newest first, changelogs cut to 1 KiB. */
  listVersions(page: number, pageSize: number): Promise<ListedVersion[]> {
    return this.#database.long.versions({ skip: (page - 1) * pageSize, take: pageSize })
  }

  /** What requests did to files, and files as they were. */
  get history(): HistoryReads {
    return this.#database.long
  }

  override contentPrefixes(): Promise<string[]> {
    return this.#database.long.contentPrefixes()
  }

  override contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#database.long.contents(prefix)
  }

  override contentSizes(digests: string[], reader: ContentReader): Promise<Map<string, number>> {
    return this.#database.long.contentSizes({ ...reader, digests })
  }

  /** For health checks and metrics; waits for nothing. */
  status(): CatalogStatus {
    return this.#database.status()
  }

  /** Holds the events that it appends, to be read. */
  get outbox(): Sql {
    return this.#database.sql
  }

  /** Reads all rows as of one moment. Services may go on changing the catalog. */
  snapshot<T>(work: (tables: Table[]) => Promise<T>): Promise<T> {
    return this.#database.sql.snapshot((transaction) => work(readCatalog(transaction)))
  }

  /** What of the catalog does not agree with itself: rows, references and every count that is kept. */
  findMiscounts(): Promise<Miscount[]> {
    return findMiscounts(this.#database.sql)
  }
}
