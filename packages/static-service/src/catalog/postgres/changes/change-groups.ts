import type { Postgres, Transaction } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../../blobs/content-transaction.ts'
import type { FileRow } from '../../../files/file-record.ts'
import { applyCommand, type FileCommand, summarize } from '../../apply-command.ts'
import type { DirectoryMove } from '../../catalog.ts'
import { type CatalogCommand, type Outcome, Rejected } from '../../commands.ts'
import { FreedContents } from '../../file-table.ts'
import { isIntoItself, movedPath } from '../../move-files.ts'
import { recordVersion } from '../version-rows.ts'
import { loadBelow, loadFiles } from './load-files.ts'
import { LoadedFiles } from './loaded-files.ts'
import { ReferenceChanges } from './reference-changes.ts'
import { writeChanges } from './write-changes.ts'

/** What the commands of a group share. */
interface Group {
  transaction: Transaction
  /** Time of the changes, of the database's clock. */
  now: string
  revision: number
  references: ReferenceChanges
  /** Digests without bytes: commands that name them are rejected. */
  missing: Set<string>
}

/**
 * Commits commands of several requests in one transaction, under one lock for all processes. Each is checked in memory
 * before anything of it is written, so no savepoints are needed.
 */
export class ChangeGroups {
  readonly #postgres: Postgres
  readonly #contents: ContentTransaction

  constructor(postgres: Postgres, contents: ContentTransaction) {
    this.#postgres = postgres
    this.#contents = contents
  }

  /** One outcome per command, in order. If it throws, none took effect, except with `OutcomeUnknownError`. */
  commit(commands: CatalogCommand[]): Promise<Outcome[]> {
    return this.#postgres.transaction(async (transaction) => {
      const group = await this.#begin(transaction, commands)
      const outcomes: Outcome[] = []
      for (const run of runsOf(commands)) outcomes.push(...(await applyRun(group, run)))
      const { added, freed } = group.references
      if (added.length + freed.length > 0) await this.#contents.apply(transaction, { added, freed })
      return outcomes
    })
  }

  async #begin(transaction: Transaction, commands: CatalogCommand[]): Promise<Group> {
    // A statement of its own: the next ones see what the previous holder of the lock committed.
    const [locked] = await transaction.query<{ now: Date }>(
      `select pg_advisory_xact_lock(hashtextextended('static_service.catalog', 0)), clock_timestamp() now`,
    )
    const [catalog] = await transaction.query<{ revision: number }>(
      'select revision from static_service.catalog',
    )
    if (!locked || !catalog) throw new Error('the catalog has no row of counts')
    const digests = commands.flatMap(digestsOf)
    return {
      transaction,
      now: locked.now.toISOString(),
      revision: catalog.revision + 1,
      references: new ReferenceChanges(),
      missing:
        digests.length > 0 ? await this.#contents.findMissing(transaction, digests) : new Set(),
    }
  }
}

type Run = FileCommand[] | Exclude<CatalogCommand, FileCommand>

/** Commands on single files are loaded and written together; every other command alone. */
function runsOf(commands: CatalogCommand[]): Run[] {
  const runs: Run[] = []
  for (const command of commands) {
    const last = runs.at(-1)
    if (command.kind === 'removeBelow' || command.kind === 'record') runs.push(command)
    else if (command.kind === 'moveDirectory' || !Array.isArray(last) || isMove(last)) {
      runs.push([command])
    } else last.push(command)
  }
  return runs
}

const isMove = ([first]: FileCommand[]) => first?.kind === 'moveDirectory'

async function applyRun(group: Group, run: Run): Promise<Outcome[]> {
  if (Array.isArray(run)) return applyToFiles(group, run)
  const { transaction, now } = group
  if (run.kind === 'removeBelow') return [await removeBelow(group, run.directory)]
  return [await recordVersion(transaction, run.version, now)]
}

async function applyToFiles(group: Group, commands: FileCommand[]): Promise<Outcome[]> {
  const { transaction } = group
  const moving = await Promise.all(commands.map((command) => findMoving(transaction, command)))
  const below = moving.flat()
  const paths = commands.flatMap((command) => pathsOf(command, below))
  const digests = commands.flatMap(digestsOf)
  const table = new LoadedFiles(await loadFiles(transaction, { paths, digests }), below)
  const outcomes = commands.map((command) => tryCommand(group, table, command))
  if (outcomes.some((outcome) => 'done' in outcome)) await write(group, table)
  return outcomes
}

function tryCommand({ missing, now }: Group, table: LoadedFiles, command: FileCommand): Outcome {
  try {
    const lost = command.kind === 'put' && command.files.find(({ digest }) => missing.has(digest))
    if (lost) throw new Rejected('content_missing', lost.path)
    const outcome = applyCommand(table, command, now)
    table.accept()
    return outcome
  } catch (error) {
    table.undo()
    if (error instanceof Rejected) return { refused: error.reason, path: error.path }
    throw error
  }
}

async function write(group: Group, table: LoadedFiles) {
  await writeChanges(group.transaction, table, group.revision)
  group.references.add(table)
}

// In pieces: the rows of a million files would not fit into memory.
async function removeBelow(group: Group, directory: string): Promise<Outcome> {
  const { transaction } = group
  const freed = new FreedContents()
  let files = 0
  for (;;) {
    const rows = await loadBelow(transaction, directory, removedAtOnce)
    const paths = [directory, ...rows.map(({ path }) => path)]
    const table = new LoadedFiles(await loadFiles(transaction, { paths, digests: [] }))
    const isFirst = files === 0
    if (isFirst && !table.isDirectory(directory)) {
      return { refused: 'directory_not_found', path: directory }
    }
    for (const row of rows) table.remove(row, freed)
    files += rows.length
    await write(group, table)
    if (rows.length < removedAtOnce) {
      return { done: 'remove', files, changed: 'all', ...summarize(freed) }
    }
  }
}

const removedAtOnce = 5000

/** The files that a command moves with their directory. */
async function findMoving(transaction: Transaction, command: FileCommand): Promise<FileRow[]> {
  const isMoving =
    command.kind === 'moveDirectory' && command.from !== command.to && !isIntoItself(command)
  return isMoving ? loadBelow(transaction, command.from, null) : []
}

function pathsOf(command: FileCommand, below: FileRow[]): string[] {
  switch (command.kind) {
    case 'put':
      return command.files.map(({ path }) => path)
    case 'remove':
      return [command.path]
    case 'removeAll':
      return command.paths
    case 'moveFile':
      return [command.from, command.to]
    case 'moveDirectory':
      return movedPaths(command, below)
  }
}

const movedPaths = (move: DirectoryMove, below: FileRow[]) => [
  move.from,
  ...below.flatMap(({ path }) => [path, movedPath(path, move)]),
]

const digestsOf = (command: CatalogCommand) =>
  command.kind === 'put' ? command.files.map(({ digest }) => digest) : []
