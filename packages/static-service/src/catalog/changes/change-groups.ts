import { HttpError } from '@domains-and-files/http'
import { DatabaseFullError, dialect, now, one, type Sql, sql } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import { recordUsedUp } from '../../sharing/links.ts'
import { commitEach, type GroupCommit, type Outcome } from '../../sqlite/worker-commits.ts'
import { importRows } from '../archive.ts'
import { recordVersion } from '../versions.ts'
import { abandon, begin, changeBelow, continueChange, rehearse } from './directory-changes.ts'
import { moveFiles, put, remove } from './file-changes.ts'
import type { CatalogOptions, Group, HistoryRules, SliceLimits } from './group.ts'
import { LoadedFiles } from './loaded-files.ts'
import { dropOldest, forget, keepContents, prune } from './past-rows.ts'
import { revert } from './revert-change.ts'
import { loadFiles, writeChanges } from './stored-rows.ts'
import { replaceTree } from './tree-changes.ts'

/** Changes of the files that they name. Several share a transaction: they are applied to rows in memory. */
const fileChanges = { put, remove, moveFiles }

/** Changes of files that they do not name, or of very many, and others. Each is a transaction of its own. */
const loneChanges = {
  changeBelow,
  rehearse,
  begin,
  continue: continueChange,
  abandon,
  replaceTree,
  keepContents,
  revert,
  prune,
  forget,
  importRows,
  record: recordVersion,
  recordUsedUp,
}

type Changes = typeof fileChanges & typeof loneChanges

/** Changes of the catalog. Each is atomic, and durable when its promise resolves. */
export type CatalogWrites = {
  [Name in keyof Changes]: (input: Parameters<Changes[Name]>[1]) => Promise<Awaited<ReturnType<Changes[Name]>>>
}

type CommandOf<Names extends keyof Changes> = {
  [Name in Names]: { name: Name; input: Parameters<Changes[Name]>[1] }
}[Names]

/** A change and its input, for a queue and for another thread. */
export type CatalogCommand = CommandOf<keyof Changes>

type FileCommand = CommandOf<keyof typeof fileChanges>

export function catalogWrites(queue: Pick<GroupCommit<CatalogCommand, unknown>, 'submit'>) {
  const submits = Object.keys({ ...fileChanges, ...loneChanges }).map((name) => {
    const size = name in loneChanges ? 'large' : 'small'
    return [name, (input: unknown) => queue.submit({ name, input } as CatalogCommand, size)]
  })
  return Object.fromEntries(submits) as CatalogWrites
}

/** Whether a command is a transaction of its own. */
export const isAlone = ({ name }: CatalogCommand) => name in loneChanges

interface Effects {
  /** Paths that were changed. */
  changed: string[]
  /** Digests without references left. */
  freed: string[]
}

/** What a group of commands did: an outcome per command, in order, and what all changed. */
export type Committed = Effects & { outcomes: Outcome<unknown>[] }

export interface ChangeDependencies extends CatalogOptions {
  sql: Pick<Sql, 'transaction'>
  /** Blobs whose rows change in the transactions of the catalog. */
  contents?: ContentTransaction
  /** Disk space that is released when deletions need it. */
  reserve?: { release(): void; refill(): void }
}

/**
 * Commits commands of several requests in one transaction, under one lock for all processes. Checks each command in
 * memory before writing it, so that no savepoints are needed.
 */
export class ChangeGroups {
  readonly #dependencies: ChangeDependencies
  readonly #rules: Group['rules']
  readonly #keeps: Group['keeps']
  /** Files per slice of a large change; reduced on a full disk. */
  #sliceFiles: number

  constructor(dependencies: ChangeDependencies) {
    this.#dependencies = dependencies
    this.#rules = { ...noHistory, ...dependencies.history, ...sliceLimits, ...dependencies.limits }
    const { keepDays, keepVersions, sliceFiles } = this.#rules
    this.#keeps = keepDays > 0 ? 'all' : keepVersions > 0 ? 'versions' : 'none'
    this.#sliceFiles = sliceFiles
  }

  /** See `commitEach`. If it rejects, no command took effect, except possibly with `OutcomeUnknownError`. */
  async commit(commands: CatalogCommand[]): Promise<Committed> {
    const effects: Effects = { changed: [], freed: [] }
    try {
      const outcomes = await commitEach(
        commands,
        async (some) => {
          const done = await this.#transact(some, effects)
          this.#sliceFiles = Math.min(this.#rules.sliceFiles, this.#sliceFiles * 2)
          return done
        },
        (command, error) => this.#commitOnFullDisk(command, error, effects),
      )
      return { outcomes, ...effects }
    } finally {
      this.#dependencies.reserve?.refill()
    }
  }

  /** Retries a deletion with the disk reserve released, without history, and in smaller and smaller slices. */
  async #commitOnFullDisk(command: CatalogCommand, error: unknown, effects: Effects): Promise<Outcome<unknown>> {
    const { name, input } = command
    const isDeletion =
      /^(?:begin|continue|forget|prune|remove)$/.test(name) || (name === 'changeBelow' && input.to === null)
    if (!isDeletion || !(error instanceof DatabaseFullError)) return { error }
    this.#dependencies.reserve?.release()
    for (;;) {
      try {
        const [outcome] = await this.#transact([command], effects, 'none')
        return outcome ?? { error }
      } catch (again) {
        const isFull = again instanceof DatabaseFullError
        if (!isFull || name !== 'continue' || this.#sliceFiles === 1) return { error: again }
        this.#sliceFiles = Math.ceil(this.#sliceFiles / 5)
      }
    }
  }

  async #transact(commands: CatalogCommand[], effects: Effects, keeps = this.#keeps) {
    const { sql: database, contents, quotaBytes: quota } = this.#dependencies
    const { outcomes, table } = await database.transaction(async (transaction) => {
      // A separate statement: the next ones must see the commits of the previous lock holder.
      const { nowMs } = await one<{ nowMs: number }>(transaction, lockCatalog)
      const table = new LoadedFiles({ clock: new Date(nowMs).toISOString(), quota })
      const group: Group = {
        transaction,
        contents,
        nowMs,
        keeps,
        table,
        rules: { ...this.#rules, sliceFiles: this.#sliceFiles },
      }
      const outcomes = await applyAll(group, commands)
      await writeChanges(group)
      // The quota is for past files, too; commands have checked the current ones alone.
      const { storedSize, pastSize } = table.counts
      if (table.changed.length > 0 && storedSize + pastSize > table.quota) {
        await dropOldest(group, Math.min(pastSize, storedSize + pastSize - table.quota))
        await writeChanges(group)
      }
      return { outcomes, table }
    })
    effects.changed = effects.changed.concat(table.changed)
    effects.freed = effects.freed.concat(table.freed)
    return outcomes
  }
}

// PostgreSQL's lock holds until the transaction ends; SQLite has one writer anyway.
const lockCatalog = sql`select ${dialect({
  sqlite: sql``,
  postgres: sql`pg_advisory_xact_lock(hashtextextended('static_service.catalog', 0)),`,
})} ${now} "nowMs"`

const noHistory: HistoryRules = { keepDays: 0, keepVersions: 20, entryDays: 0 }

// These take 2 s and 0.5 s of a core in SQLite.
const sliceLimits: SliceLimits = { wholeFiles: 20_000, sliceFiles: 4000 }

/** Carries out a lone command; or applies commands on files in memory, and writes the resulting rows. */
async function applyAll(group: Group, commands: CatalogCommand[]): Promise<Outcome<unknown>[]> {
  const lone = commands.find(isAlone)
  if (lone) return [{ value: await Reflect.get(loneChanges, lone.name)(group, lone.input) }]
  const changes = commands as FileCommand[] // The queue groups no others.
  const digests = changes.flatMap(({ name, input }) => (name === 'put' ? input.files.map(({ digest }) => digest) : []))
  const table = await loadFiles(group, changes.flatMap(pathsOf), { digests, areNew: true })
  return changes.map((change): Outcome<unknown> => {
    const apply: (table: LoadedFiles, input: never) => unknown = fileChanges[change.name]
    try {
      return { value: apply(table, change.input as never) } // Each takes the input of its name.
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      table.undo()
      return { error }
    }
  })
}

function pathsOf({ name, input }: FileCommand): string[] {
  if (name === 'put') return input.files.map(({ path }) => path)
  return name === 'remove' ? input.paths : input.moves.flatMap(({ from, to }) => [from, to])
}
