import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../files/file-record.ts'
import type { Conditions } from '../rfc9110/entity-tags.ts'
import { GroupCommit } from '../sqlite/group-commit.ts'
import type { CatalogChanges, DirectoryMove, Removed } from './catalog.ts'
import type { CatalogCommand, ChangedPaths, MoveFileCommand, Outcome } from './commands.ts'
import { errorOf } from './rejection-errors.ts'

/**
 * Changes as commands that are committed in groups. An implementation supplies `commitGroup`: one outcome per command, in
 * order, each command done whole or not at all.
 */
export abstract class GroupedChanges implements CatalogChanges {
  /** Maximum bytes of the distinct contents; undefined: unlimited. */
  protected readonly quotaBytes: number | undefined
  readonly #commits: GroupCommit<CatalogCommand, Outcome>
  readonly #changeListeners: ((paths: ChangedPaths) => void)[] = []
  readonly #freeListeners: ((digests: string[]) => void)[] = []

  constructor(quotaBytes: number | undefined) {
    this.quotaBytes = quotaBytes
    this.#commits = new GroupCommit(
      (commands) => this.#commit(commands),
      (error) => error instanceof DatabaseUnavailableError,
    )
  }

  protected abstract commitGroup(commands: CatalogCommand[]): Promise<Outcome[]>

  protected get queuedChanges(): number {
    return this.#commits.queued
  }

  async put(
    files: NewFile[],
    conditions: Conditions = {},
  ): Promise<{ rows: FileRow[]; wasNew: boolean }> {
    const quota = this.quotaBytes
    const outcome = await this.#commits.submit({ kind: 'put', files, conditions, quota })
    if ('done' in outcome && outcome.done === 'put') return outcome
    throw errorOf(outcome, quota)
  }

  async remove(path: string, conditions: Conditions = {}): Promise<void> {
    await this.#removeMany({ kind: 'remove', path, conditions })
  }

  removeAll(paths: string[]): Promise<Removed> {
    return this.#removeMany({ kind: 'removeAll', paths })
  }

  removeBelow(directory: string): Promise<Removed> {
    return this.#removeMany({ kind: 'removeBelow', directory })
  }

  async moveFile(move: Omit<MoveFileCommand, 'kind'>): Promise<number | undefined> {
    const outcome = await this.#commits.submit({ kind: 'moveFile', ...move })
    if ('refused' in outcome && outcome.refused === 'content_changed') return undefined
    if ('done' in outcome && outcome.done === 'move') return outcome.files
    throw errorOf(outcome, this.quotaBytes)
  }

  async moveDirectory(move: DirectoryMove): Promise<number> {
    const outcome = await this.#commits.submit({ kind: 'moveDirectory', ...move })
    if ('done' in outcome && outcome.done === 'move') return outcome.files
    throw errorOf(outcome, this.quotaBytes)
  }

  async record(version: NewVersion): Promise<VersionRow> {
    const outcome = await this.#commits.submit({ kind: 'record', version })
    if ('done' in outcome && outcome.done === 'record') return outcome.version
    throw errorOf(outcome, this.quotaBytes)
  }

  onChange(listener: (paths: ChangedPaths) => void): void {
    this.#changeListeners.push(listener)
  }

  onFree(listener: (digests: string[]) => void): void {
    this.#freeListeners.push(listener)
  }

  // Listeners run before any caller of the group is answered.
  async #commit(commands: CatalogCommand[]): Promise<Outcome[]> {
    const outcomes = await this.commitGroup(commands)
    for (const outcome of outcomes) this.#notify(outcome)
    return outcomes
  }

  async #removeMany(command: CatalogCommand): Promise<Removed> {
    const outcome = await this.#commits.submit(command)
    if ('done' in outcome && outcome.done === 'remove') return outcome
    throw errorOf(outcome, this.quotaBytes)
  }

  #notify(outcome: Outcome) {
    if (!('done' in outcome) || outcome.done === 'record') return
    for (const listener of this.#changeListeners) listener(outcome.changed)
    if (outcome.freed.length === 0) return
    for (const listener of this.#freeListeners) listener(outcome.freed)
  }
}
