import { HttpError } from '@domains-and-files/http'
import {
  DatabaseUnavailableError,
  type Row,
  type Sql,
  type Table,
} from '@domains-and-files/persistence'
import type { StoredBlob } from '../blobs/staged-blob.ts'
import { pathConflict, preconditionFailed, quotaExceeded } from '../errors.ts'
import type {
  FileRow,
  ListedVersion,
  NewFile,
  NewVersion,
  VersionRow,
} from '../files/file-record.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import type { Link } from '../sharing/links.ts'
import { GroupCommit } from '../sqlite/group-commit.ts'
import { readCatalog } from './archive.ts'
import { BackgroundChanges } from './background-changes.ts'
import type {
  Catalog,
  CatalogStatus,
  ContentReader,
  FileMove,
  Removed,
  RulesCheck,
  SizeRange,
  TreeReplacement,
  Usage,
} from './catalog.ts'
import type { CatalogDatabase, CatalogOptions } from './catalog-database.ts'
import { type ChangeEntry, nobody } from './changes/change-entry.ts'
import type { TreeChange } from './changes/commands.ts'
import {
  type CatalogCommand,
  type ChangedPaths,
  type DirectoryMove,
  isAlone,
  type Outcome,
} from './changes/commands.ts'
import { findMiscounts, type Miscount } from './find-miscounts.ts'
import type { HistoryReads } from './history/past-files.ts'
import type { FileList, ListQuery, TreeQuery } from './list-query.ts'
import type { OpenedTree, TreeFile, TreePageQuery, TreeQueryAt } from './listing/tree-files.ts'
import { Queries } from './queries.ts'
import { errorOf } from './rejection-errors.ts'

/** The catalog in a database. Changes are committed in groups. */
export class SqlCatalog extends Queries implements Catalog {
  readonly isExclusive: boolean
  readonly #database: CatalogDatabase
  readonly #quotaBytes: number | undefined
  readonly #keepDays: number
  readonly #commits: GroupCommit<CatalogCommand, Outcome>
  readonly #changeListeners: ((paths: ChangedPaths) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []
  readonly #background: BackgroundChanges

  constructor(
    database: CatalogDatabase,
    { quotaBytes, history, isCommand = false }: CatalogOptions,
  ) {
    super(database.sql)
    this.isExclusive = database.isExclusive
    this.#database = database
    this.#quotaBytes = quotaBytes
    this.#keepDays = history?.keepDays ?? 0
    this.#commits = new GroupCommit((commands) => this.#commit(commands), {
      isOutage: (error) =>
        error instanceof DatabaseUnavailableError ||
        (error instanceof HttpError && error.status === 503),
      isLarge: isAlone,
    })
    this.#background = new BackgroundChanges({
      database,
      history,
      submit: (command) => this.#commits.submit(command),
      toError: (outcome) => errorOf(outcome, this.#quotaBytes),
    })
    if (!isCommand) this.#background.start()
  }

  async put(
    files: NewFile[],
    conditions: Conditions = {},
    actor = nobody,
  ): Promise<{ rows: FileRow[]; wasNew: boolean }> {
    const quota = this.#quotaBytes
    return this.#submit({ kind: 'put', actor, files, conditions, quota }, 'put')
  }

  async remove(path: string, conditions: Conditions = {}, actor = nobody): Promise<void> {
    await this.#submit({ kind: 'remove', actor, path, conditions }, 'remove')
  }

  removeAll(paths: string[], actor = nobody): Promise<Removed> {
    return this.#submit({ kind: 'removeAll', actor, paths }, 'remove')
  }

  async forget(paths: string[], actor = nobody): Promise<Removed & { freed: string[] }> {
    return this.#submit({ kind: 'forget', actor, paths }, 'remove')
  }

  async removeBelow(directory: string, actor = nobody): Promise<Removed> {
    const command = { kind: 'removeBelow', actor, directory } as const
    const outcome = await this.#commits.submit(command)
    // Where the disk has no room for the whole change, it may have some for slices of it.
    const isDivided = 'failed' in outcome && isFull(errorOf(outcome, undefined))
    const next = isDivided ? await this.#commits.submit({ ...command, inSlices: true }) : outcome
    if ('done' in next && next.done === 'begun') return this.#background.carryOut(next.id)
    return this.#expect(next, 'remove')
  }

  async moveFile(move: FileMove, actor = nobody): Promise<number | undefined> {
    const outcome = await this.#commits.submit({ kind: 'moveFile', actor, ...move })
    if ('refused' in outcome && outcome.refused === 'content_changed') return undefined
    return this.#expect(outcome, 'move').files
  }

  async moveDirectory(move: DirectoryMove, actor = nobody): Promise<number> {
    const command = { kind: 'moveDirectory', actor, ...move } as const
    const outcome = await this.#commits.submit(command)
    if (!('refused' in outcome) || outcome.refused !== 'too_many_files') {
      return this.#expect(outcome, 'move').files
    }
    const refusal = await this.#database.long.findMoveRefusal(move)
    if (refusal) throw errorOf(refusal, this.#quotaBytes)
    const { id } = await this.#submit({ ...command, inSlices: true }, 'begun')
    return (await this.#background.carryOut(id)).files
  }

  async keepContents(
    contents: StoredBlob[],
    { callerId, isLimited }: { callerId: string; isLimited: boolean },
  ): Promise<void> {
    const keepDays = this.#keepDays
    await this.#submit({ kind: 'keepContents', contents, callerId, keepDays, isLimited }, 'keep')
  }

  async replaceTree(command: TreeReplacement): Promise<TreeChange> {
    const quota = this.#quotaBytes
    return (await this.#submit({ kind: 'replaceTree', ...command, quota }, 'tree')).tree
  }

  async revert(change: number, overwrite: boolean, actor = nobody): Promise<ChangeEntry> {
    const quota = this.#quotaBytes
    const command = { kind: 'revert', actor, change, overwrite, quota } as const
    return (await this.#submit(command, 'revert')).change
  }

  async recordUsedUp(links: Link[]): Promise<void> {
    await this.#submit({ kind: 'recordUsedUp', links }, 'other')
  }

  async record(version: NewVersion): Promise<VersionRow> {
    const recorded = await this.#submit({ kind: 'record', version }, 'record')
    // An older version may not keep its files any more.
    void this.#background.prune()
    return recorded.version
  }

  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  override find(path: string): Promise<FileRow | undefined> {
    return this.#database.find(path)
  }

  findNow(path: string): FileRow | undefined {
    return this.#database.findNow?.(path)
  }

  checkRules(check: RulesCheck): void {
    this.#database.checkRules?.(check)
  }

  async checkPut(path: string, conditions: Conditions): Promise<void> {
    const { row, conflicts } = await this.findTarget(path)
    if (!row && conflicts) throw pathConflict(path)
    if (!holds(conditions, row)) throw preconditionFailed(path)
  }

  async checkQuota(path: string, size: SizeRange): Promise<void> {
    const quota = this.#quotaBytes
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

  tree(query: TreeQuery): Promise<Uint8Array | undefined> {
    return this.#database.long.tree(query)
  }

  override usage(directory: string): Promise<Usage> {
    return directory === '' ? super.usage('') : this.#database.long.usage(directory)
  }

  openTree(query: TreeQueryAt): Promise<OpenedTree | undefined> {
    return this.#database.long.openTree(query)
  }

  readTreePage(query: TreePageQuery): Promise<TreeFile[]> {
    return this.#database.long.treePage(query)
  }

  listVersions(page: number, pageSize: number): Promise<ListedVersion[]> {
    return this.#database.long.versions({ skip: (page - 1) * pageSize, take: pageSize })
  }

  get outbox(): Sql {
    return this.#database.sql
  }

  async dropPast(bytes: number): Promise<number> {
    return (await this.#submit({ kind: 'prune', need: bytes }, 'prune')).rows
  }

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

  status(): CatalogStatus {
    return this.#database.status()
  }

  get waiting(): { changes: number; questions: number } {
    return { changes: this.#commits.queued, questions: this.#database.waiting }
  }

  snapshot<T>(work: (tables: Table[]) => Promise<T>): Promise<T> {
    return this.#database.sql.snapshot((transaction) => work(readCatalog(transaction)))
  }

  async importRows(table: string, rows: Row[]): Promise<void> {
    await this.#submit({ kind: 'import', table, rows }, 'other')
  }

  findMiscounts(): Promise<Miscount[]> {
    return findMiscounts(this.#database.sql)
  }

  stopBackground(): Promise<void> {
    return this.#background.close()
  }

  async close(): Promise<void> {
    await this.stopBackground()
    await this.#database.close()
  }

  async #submit<Kind extends Done>(command: CatalogCommand, kind: Kind) {
    return this.#expect(await this.#commits.submit(command), kind)
  }

  #expect<Kind extends Done>(outcome: Outcome, kind: Kind): Extract<Outcome, { done: Kind }> {
    if ('done' in outcome && outcome.done === kind) {
      return outcome as Extract<Outcome, { done: Kind }> // Its kind says so.
    }
    throw errorOf(outcome, this.#quotaBytes)
  }

  // Listeners run before any caller of the group is answered.
  async #commit(commands: CatalogCommand[]): Promise<Outcome[]> {
    const outcomes = await this.#database.commit(commands)
    for (const outcome of outcomes) {
      if (!('changed' in outcome)) continue
      for (const listener of this.#changeListeners) listener(outcome.changed)
      if (outcome.freed.length === 0) continue
      for (const listener of this.#freeListeners) listener(outcome.freed)
    }
    return outcomes
  }
}

type Done = Extract<Outcome, { done: string }>['done']

const isFull = (error: unknown) => error instanceof HttpError && error.status === 507
