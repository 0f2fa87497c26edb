import { HttpError } from '@domains-and-files/http'
import { DatabaseFullError, dialect, now, type Sql, sql } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import { contentMissing } from '../../errors.ts'
import { commitEach, type Outcome } from '../../sqlite/worker-commits.ts'
import { importRows } from '../archive.ts'
import { forgetFiles } from '../history/forget-files.ts'
import { recordVersion } from '../versions.ts'
import { applyCommand } from './apply-command.ts'
import { appendLinkEvents } from './change-entry.ts'
import type {
  CatalogCommand,
  Command,
  Done,
  Group,
  LoneCommand,
  Results,
  SmallCommand,
} from './commands.ts'
import {
  abandon,
  begin,
  changeBelow,
  continueChange,
  type SliceLimits,
} from './directory-changes.ts'
import { keepContents } from './keep-contents.ts'
import type { LoadedFiles } from './loaded-files.ts'
import { type HistoryRules, prune } from './prune-past.ts'
import { revertChange } from './revert-change.ts'
import { loadFiles, writeChanges } from './stored-rows.ts'
import { replaceTree } from './tree-changes.ts'

export interface ChangeDependencies {
  sql: Pick<Sql, 'transaction'>
  /** Blobs whose rows change in the transactions of the catalog. */
  contents?: ContentTransaction
  /** Disk space that is released when deletions need it. */
  reserve?: { release(): void; refill(): void }
  limits?: SliceLimits | undefined
  history?: HistoryRules | undefined
  /** Maximum bytes of current and past blobs together. */
  quotaBytes?: number | undefined
}

/**
 * Commits commands of several requests in one transaction, under one lock for all processes. Checks each command in
 * memory before writing it, so that no savepoints are needed.
 */
export class ChangeGroups {
  readonly #dependencies: ChangeDependencies
  readonly #rules: Rules
  readonly #keeps: Group['keeps']
  /** Files per slice of a large change; reduced on a full disk. */
  #sliceFiles: number

  constructor(dependencies: ChangeDependencies) {
    const { limits = sliceLimits, history = noHistory } = dependencies
    const { keepDays, keepVersions } = history
    this.#dependencies = dependencies
    this.#rules = { ...history, ...limits }
    this.#keeps = keepDays > 0 ? 'all' : keepVersions > 0 ? 'versions' : 'none'
    this.#sliceFiles = limits.sliceFiles
  }

  /** See `commitEach`. If it rejects, no command took effect, except possibly with `OutcomeUnknownError`. */
  async commit(commands: CatalogCommand[]): Promise<Outcome<Done>[]> {
    try {
      return await commitEach(
        commands,
        async (some) => {
          const outcomes = await this.#transact(some)
          this.#sliceFiles = Math.min(this.#rules.sliceFiles, this.#sliceFiles * 2)
          return outcomes
        },
        (command, error) => this.#commitOnFullDisk(command, error),
      )
    } finally {
      this.#dependencies.reserve?.refill()
    }
  }

  /** Retries a deletion with the disk reserve released, without history, and in smaller and smaller slices. */
  async #commitOnFullDisk(command: CatalogCommand, error: unknown): Promise<Outcome<Done>> {
    const isDeletion =
      /^(?:begin|continue|forget|prune|remove)/.test(command.kind) ||
      (command.kind === 'changeBelow' && command.target === null)
    if (!isDeletion || !(error instanceof DatabaseFullError)) return { error }
    this.#dependencies.reserve?.release()
    for (;;) {
      try {
        const [outcome] = await this.#transact([command], 'none')
        return outcome ?? { error }
      } catch (again) {
        if (!(again instanceof DatabaseFullError)) return { error: again }
        if (command.kind !== 'continue' || this.#sliceFiles === 1) return { error: again }
        this.#sliceFiles = Math.ceil(this.#sliceFiles / 5)
      }
    }
  }

  #transact(commands: CatalogCommand[], keeps = this.#keeps): Promise<Outcome<Done>[]> {
    const { sql: database, contents, quotaBytes: quota } = this.#dependencies
    return database.transaction(async (transaction) => {
      // A separate statement: the next ones must see the commits of the previous lock holder.
      const locked = await transaction.get<{ nowMs: number }>(lockCatalog)
      if (!locked) throw new Error('a query without a table has no row')
      const digests = contents ? commands.flatMap(digestsOf) : []
      const group: Group = {
        ...{ transaction, nowMs: locked.nowMs, keeps, quota, freed: [] },
        missing:
          (digests.length > 0 && (await contents?.findMissing(transaction, digests))) || new Set(),
        references: new Map(),
      }
      const rules = { ...this.#rules, sliceFiles: this.#sliceFiles }
      const outcomes = await applyAll(group, commands, rules)
      if (contents) await applyReferences(contents, group)
      const last = outcomes.findLast((outcome) => 'value' in outcome)
      if (last) last.freed = group.freed
      return outcomes
    })
  }
}

type Rules = HistoryRules & SliceLimits

const handlers: {
  [Of in LoneCommand['kind']]: (
    group: Group,
    command: Command<Of>,
    rules: Rules,
  ) => Promise<Done<Results[Of]>>
} = {
  import: importRows,
  forget: forgetFiles,
  continue: continueChange,
  ...{ keepContents, replaceTree, prune, changeBelow, begin, abandon },
  revert: revertChange,
}

// PostgreSQL's lock holds until the transaction ends; SQLite has one writer anyway.
const lockCatalog = sql`select ${dialect({
  sqlite: sql``,
  postgres: sql`pg_advisory_xact_lock(hashtextextended('static_service.catalog', 0)),`,
})} ${now} "nowMs"`

const noHistory: HistoryRules = { keepDays: 0, keepVersions: 20, entryDays: 0 }

// These take 2 s and 0.5 s of a core in SQLite.
const sliceLimits: SliceLimits = { wholeFiles: 20_000, sliceFiles: 4000 }

/** Whether a command is a transaction of its own. */
export const isAlone = (command: CatalogCommand): command is LoneCommand => command.kind in handlers

async function applyAll(group: Group, commands: CatalogCommand[], rules: Rules) {
  const [command] = commands
  if (commands.length > 1 || !command || !isAlone(command))
    return applyTogether(group, commands as SmallCommand[]) // The queue groups no others.
  // Each handler takes the commands of its kind.
  const handle = handlers[command.kind] as (...args: [Group, LoneCommand, Rules]) => Promise<Done>
  return [await handle(group, command, rules)]
}

/** Applies commands on single files in memory, writes the resulting rows, and adds version records. */
async function applyTogether(group: Group, commands: SmallCommand[]): Promise<Outcome<Done>[]> {
  const paths = commands.flatMap(pathsOf)
  const digests = commands.flatMap(digestsOf)
  const table = paths.length > 0 ? await loadFiles(group, paths, { digests }) : undefined
  const outcomes: Outcome<Done>[] = []
  for (const command of commands) {
    try {
      outcomes.push(await applySmall(group, command, table))
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      table?.undo()
      outcomes.push({ error })
    }
  }
  if (table && table.changes.length > 0) await writeChanges(group, table)
  return outcomes
}

async function applySmall(
  { transaction, missing, nowMs }: Group,
  command: SmallCommand,
  table: LoadedFiles | undefined,
): Promise<Done> {
  if (command.kind === 'record') return recordVersion({ transaction, nowMs }, command.version)
  if (command.kind === 'recordUsedUp') return appendLinkEvents(transaction, command.links)
  if (!table) throw new Error('nothing was loaded for a command on files')
  if (command.kind === 'put' && command.files.some(({ digest }) => missing.has(digest)))
    throw contentMissing()
  return applyCommand(table, command)
}

async function applyReferences(contents: ContentTransaction, { transaction, references }: Group) {
  const { added = [], freed = [] } = Object.groupBy(references, ([, { before, after }]) =>
    before === after ? 'same' : after ? 'added' : 'freed',
  )
  const digests = (some: typeof added) => some.map(([digest]) => digest)
  if (added.length + freed.length > 0)
    await contents.apply(transaction, { added: digests(added), freed: digests(freed) })
}

function pathsOf(command: CatalogCommand): string[] {
  switch (command.kind) {
    case 'put':
      return command.files.map(({ path }) => path)
    case 'remove':
      return command.paths
    case 'moveFiles':
      return command.moves.flatMap(({ from, to }) => [from, to])
    default:
      return []
  }
}

function digestsOf(command: CatalogCommand): string[] {
  if (command.kind === 'keepContents') return command.contents.map(({ digest }) => digest)
  const holder = command.kind === 'replaceTree' ? command.source : command
  return 'files' in holder ? holder.files.map(({ digest }) => digest) : []
}
