import type { Postgres } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/content-transaction.ts'
import { pathConflict, preconditionFailed, quotaExceeded } from '../../errors.ts'
import type { CategoryCount, FileRow, VersionRow } from '../../files/file-record.ts'
import { type Conditions, holds } from '../../rfc9110/entity-tags.ts'
import type { Catalog, CatalogStatus, ListedVersion, SizeRange, Totals } from '../catalog.ts'
import type { CatalogCommand, Outcome } from '../commands.ts'
import { GroupedChanges } from '../grouped-changes.ts'
import type { FileList, ListQuery } from '../list-query.ts'
import type { TreeQuery } from '../tree.ts'
import { ChangeGroups } from './changes/change-groups.ts'
import { readTree } from './directory-tree.ts'
import { FileLookup } from './file-lookup.ts'
import { Queries } from './queries.ts'
import { FileListing } from './search/list-files.ts'
import { StatusProbe } from './status-probe.ts'

export interface PostgresCatalogOptions {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  quotaBytes?: number | undefined
  /** The contents, which change in the transactions of the catalog. */
  contents: ContentTransaction
}

/**
 * The catalog in PostgreSQL, for any number of processes. It remembers no file: each look-up reads the database. The
 * schema must have `catalogMigrations`.
 */
export class PostgresCatalog extends GroupedChanges implements Catalog {
  readonly isExclusive = false
  readonly #groups: ChangeGroups
  readonly #files: FileLookup
  readonly #queries: Queries
  readonly #listing: FileListing
  readonly #postgres: Postgres
  readonly #probe: StatusProbe
  #pendingQueries = 0

  /** The caller closes `postgres` after the catalog. */
  static async open(postgres: Postgres, options: PostgresCatalogOptions): Promise<PostgresCatalog> {
    const queries = new Queries(postgres)
    const probe = await StatusProbe.start(() => queries.totals())
    return new PostgresCatalog(postgres, { queries, probe, ...options })
  }

  private constructor(
    postgres: Postgres,
    {
      queries,
      probe,
      quotaBytes,
      contents,
    }: PostgresCatalogOptions & { queries: Queries; probe: StatusProbe },
  ) {
    super(quotaBytes)
    this.#postgres = postgres
    this.#groups = new ChangeGroups(postgres, contents)
    this.#files = new FileLookup(postgres)
    this.#queries = queries
    this.#listing = new FileListing(postgres)
    this.#probe = probe
  }

  find(path: string): Promise<FileRow | undefined> {
    return this.#files.find(path)
  }

  async checkPut(path: string, conditions: Conditions): Promise<void> {
    const { row, conflicts } = await this.#queries.findTarget(path)
    if (!row && conflicts) throw pathConflict(path)
    if (!holds(conditions, row)) throw preconditionFailed(path)
  }

  async checkQuota(path: string, size: SizeRange): Promise<void> {
    const quota = this.quotaBytes
    if (quota === undefined) return
    const { storedSize, hasSize, freed } = await this.#queries.readQuota(path, size)
    if (storedSize + size.minBytes <= quota) return
    // It may equal a stored content, which takes no more room, or replace one.
    if (hasSize) return
    if (storedSize - freed + size.minBytes > quota) throw quotaExceeded(quota)
  }

  list(query: ListQuery): Promise<FileList> {
    return this.#counted(this.#listing.list(query))
  }

  tree(query: TreeQuery): Promise<Uint8Array | undefined> {
    return this.#counted(readTree(this.#postgres, query))
  }

  categories(): Promise<CategoryCount[]> {
    return this.#queries.categories()
  }

  async totals(): Promise<Totals> {
    const { newestVersion: _, ...totals } = await this.#queries.totals()
    return totals
  }

  newestVersion(): Promise<VersionRow | undefined> {
    return this.#queries.newestVersion()
  }

  findVersion(version: string): Promise<VersionRow | undefined> {
    return this.#queries.findVersion(version)
  }

  listVersions(page: number, pageSize: number): Promise<ListedVersion[]> {
    return this.#queries.listVersions((page - 1) * pageSize, pageSize)
  }

  isReferenced(digest: string): Promise<boolean> {
    return this.#queries.isReferenced(digest)
  }

  contentPrefixes(): Promise<string[]> {
    return this.#queries.contentPrefixes()
  }

  contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#queries.contents(prefix)
  }

  status(): CatalogStatus {
    return { isAvailable: this.#postgres.isAvailable, ...this.#probe.seen }
  }

  get waiting(): { changes: number; questions: number } {
    return { changes: this.queuedChanges, questions: this.#files.waiting + this.#pendingQueries }
  }

  async close(): Promise<void> {
    await this.#probe.close()
  }

  protected async commitGroup(commands: CatalogCommand[]): Promise<Outcome[]> {
    const outcomes = await this.#groups.commit(commands)
    for (const outcome of outcomes) {
      if ('done' in outcome && outcome.done === 'record') {
        this.#probe.addVersion(outcome.version.version)
      }
    }
    return outcomes
  }

  async #counted<Result>(query: Promise<Result>): Promise<Result> {
    this.#pendingQueries += 1
    try {
      return await query
    } finally {
      this.#pendingQueries -= 1
    }
  }
}
