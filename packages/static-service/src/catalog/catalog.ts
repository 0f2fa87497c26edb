import { DatabaseFullError, name, one, type Sql, sql } from '@domains-and-files/persistence'
import { parentOf } from '../files/file-path.ts'
import { GroupCommit } from '../sqlite/worker-commits.ts'
import { BackgroundChanges } from './background-changes.ts'
import { type CatalogCommand, type CatalogWrites, type Committed, catalogWrites } from './changes/change-groups.ts'
import type { DirectoryChange } from './changes/directory-changes.ts'
import type { DirectoryMove } from './changes/file-changes.ts'
import type { CatalogOptions, Removed } from './changes/group.ts'
import { type CatalogReads, type Totals, totalsStatement } from './reads.ts'
import { among, selected } from './records.ts'
import { type FileRow, nobody, type VersionRow, versionColumns } from './tables.ts'

export interface CatalogStatus {
  isAvailable: boolean
  /** Current counters, or those of the last probe; undefined if they cannot be read. */
  totals: Totals | undefined
}

/** Called with the version of the access rules; a promise where newer ones must be loaded. */
export type RulesCheck = (version: number) => Promise<void> | undefined

/**
 * Maps paths to files, and holds the version records. Changes are committed in groups; each is atomic, and durable when
 * its promise resolves. A change of more than 20,000 files is recorded first, then done in atomic slices: after a
 * crash, the next opening of the catalog completes it. All throw `insufficient_storage` when the disk of the database
 * is full. Each change of files has one entry in the list of changes, which names the actor.
 */
export abstract class Catalog {
  /**
   * Whether only this process changes the catalog. If so, callers may cache a file until `onChange` names its path;
   * otherwise they must read it for each request.
   */
  abstract readonly isExclusive: boolean
  abstract readonly reads: CatalogReads
  readonly writes: CatalogWrites
  /** For reading only: all tables of the catalog, and the events that it appends. */
  readonly database: Sql
  readonly #commits: GroupCommit<CatalogCommand, unknown>
  readonly #changeListeners: ((paths: string[]) => void)[] = []
  /** Called after each commit of this process with the digests that lost their last reference. */
  onFree: (digests: string[]) => void = () => undefined
  /** Not to be started by commands: they do not know the rules of the service's history, and would prune it. */
  readonly background: BackgroundChanges

  /** `commit`: as `ChangeGroups.commit`. */
  constructor(database: Sql, { history }: CatalogOptions, commit: (commands: CatalogCommand[]) => Promise<Committed>) {
    this.database = database
    this.#commits = new GroupCommit(async (commands) => this.#report(commands, await commit(commands)))
    this.writes = catalogWrites(this.#commits)
    this.background = new BackgroundChanges({ database, history, writes: this.writes })
  }

  abstract find(path: string): Promise<FileRow | undefined>

  /** The file at a path; if there is none, whether the path is a directory or lies below a file. */
  async findTarget(path: string): Promise<{ row: FileRow | undefined; conflicts: boolean }> {
    const row = await this.find(path)
    if (row) return { row, conflicts: false }
    const above: string[] = []
    for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
    const found = await this.database.get(
      sql`select 1 from ${name('directories')} where path = ${path}
        union all select 1 from ${name('files')} where path ${among(above)} limit 1`,
    )
    return { row, conflicts: found !== undefined }
  }

  /** Bytes of all contents, and what of it depends on a new one at this path. */
  readQuota(path: string, { minBytes, maxBytes }: { minBytes: number; maxBytes: number }) {
    return one<{ storedSize: number; hasSize: boolean | number; freed: number }>(
      this.database,
      sql`select stored_size "storedSize",
        exists (select 1 from ${name('files')} where size between ${minBytes} and ${maxBytes}) "hasSize",
        coalesce((select blob.size from ${name('files')} file join ${name('blobs')} blob on blob.digest = file.digest
          where file.path = ${path} and refs = 1), 0) freed
      from ${name('catalog')}`,
    )
  }

  /** Whether a current or past file has this digest. */
  async isReferenced(digest: string): Promise<boolean> {
    return (await this.database.get(sql`select 1 from ${name('blobs')} where digest = ${digest}`)) !== undefined
  }

  newestVersion(): Promise<VersionRow | undefined> {
    return this.database.get(sql`select ${versionRow} from ${name('versions')} order by id desc limit 1`)
  }

  findVersion(version: string): Promise<VersionRow | undefined> {
    return this.database.get(sql`select ${versionRow} from ${name('versions')} where version = ${version}`)
  }

  /** The paths of current and past files with this digest, in order. */
  async pathsOf(digest: string): Promise<string[]> {
    const rows = await this.database.all<{ path: string }>(
      sql`select path from ${name('files')} where digest = ${digest} union
        select 'the past of ' || path from ${name('past_files')} where digest = ${digest} order by path`,
    )
    return rows.map(({ path }) => path)
  }

  totals(): Promise<Totals> {
    return one(this.database, totalsStatement)
  }

  /** As `find`, but synchronous; absent where the database cannot do that. */
  findNow?(path: string): FileRow | undefined

  /**
   * Makes each look-up pass the version of the access rules that it read to `check`, and wait for it, before it returns
   * the file. Present only where other processes change the rules.
   */
  checkRules?(check: RulesCheck): void

  /** For health checks and metrics. */
  abstract status(): CatalogStatus

  /** Queries without a result yet. */
  abstract readonly waitingQueries: number

  protected abstract closeDatabase(): Promise<void>

  async close(): Promise<void> {
    await this.background.close()
    await this.closeDatabase()
  }

  /** Calls `listener` with the changed paths after each commit of this process, before the change resolves. */
  onChange(listener: (paths: string[]) => void): void {
    this.#changeListeners.push(listener)
  }

  /** Changes that wait for their commit. */
  get waitingChanges(): number {
    return this.#commits.queued
  }

  /** Removes every file below a directory; the root is empty. @throws {HttpError} `directory_not_found`. */
  removeBelow(directory: string, actor = nobody): Promise<Removed> {
    const cause = { ...actor, action: 'delete' as const, prefix: `${directory}/` }
    return this.#changeBelow({ from: directory, to: null, overwrite: false, cause })
  }

  /**
   * Moves every file below a directory, or none; returns their number. The root is empty. A move in slices stops at a
   * file that was stored in its way meanwhile.
   * @throws {HttpError} `directory_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
   */
  async moveDirectory(move: DirectoryMove, actor = nobody): Promise<number> {
    return (await this.#changeBelow({ ...move, cause: { ...actor, action: 'move' } })).files
  }

  async #changeBelow(change: DirectoryChange): Promise<Removed> {
    const whole = await this.writes.changeBelow(change).catch((error) => {
      // A disk without room for the whole deletion may have room for its slices.
      if (change.to !== null || !(error instanceof DatabaseFullError)) throw error
    })
    if (whole) return whole
    if (change.to !== null)
      for (let after: string | undefined = ''; after !== undefined; )
        after = await this.writes.rehearse({ change, after })
    return this.background.carryOut(await this.writes.begin(change))
  }

  // Listeners run before any command of the group resolves.
  #report(commands: CatalogCommand[], { outcomes, changed, freed }: Committed) {
    if (changed.length > 0) for (const listener of this.#changeListeners) listener(changed)
    if (freed.length > 0) this.onFree(freed)
    // A new version may displace an older one, whose files can then be pruned.
    if (commands.some((command) => command.name === 'record')) void this.background.prune()
    return outcomes
  }
}

const versionRow = selected(versionColumns)
