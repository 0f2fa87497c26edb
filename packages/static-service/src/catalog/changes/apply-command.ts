import {
  fileNotFound,
  pathConflict,
  preconditionFailed,
  quotaExceeded,
  targetExists,
} from '../../errors.ts'
import { readPath } from '../../files/file-path.ts'
import type { FileRow, NewFile } from '../../files/file-record.ts'
import { type Conditions, holds } from '../../rfc9110/entity-tags.ts'
import { causeOf } from './change-entry.ts'
import {
  type DirectoryMove,
  type Done,
  type FileCommand,
  type FileMove,
  FreedContents,
  type PutCommand,
} from './commands.ts'
import { type LoadedFiles, rowOf, type StoredFile } from './loaded-files.ts'

/** What the commands of a group change, and the dates that files get. */
export interface Target {
  table: LoadedFiles
  dates: ChangeDates
  /** Maximum bytes of the distinct contents of files. */
  quota: number | undefined
}

/**
 * Applies a command, and makes a change of what it did. If it throws, the caller undoes what it has changed.
 * @throws {HttpError}
 */
export function applyCommand(target: Target, command: FileCommand): Done {
  const [action, done] =
    command.kind === 'put'
      ? (['upload', put(target, command)] as const)
      : command.kind === 'remove'
        ? (['delete', removeAll(target, command.paths, command.conditions)] as const)
        : (['move', moveFiles(target, command.moves)] as const)
  target.table.accept(causeOf(command.actor, action), target.dates.of())
  return done
}

function put(target: Target, { files, conditions }: PutCommand): Done {
  const { table, quota } = target
  const freed = new FreedContents()
  const unmet: string[] = []
  let wasNew = true
  const rows = files.map((file) => {
    const before = findAt(table, file.path)
    if (!holds(conditions, before && rowOf(before))) unmet.push(file.path)
    if (before) wasNew = false
    return store(target, { before, file, freed })
  })
  if (unmet.length > 0) throw preconditionFailed(...unmet)
  if (quota !== undefined && table.storedSize > quota) throw quotaExceeded(quota)
  const changed = files.map(({ path }) => path)
  return { value: { rows, wasNew }, freed: freed.digests, changed }
}

/** The file at this path, if any. @throws {HttpError} for a directory */
function findAt(table: LoadedFiles, path: string): StoredFile | undefined {
  const found = table.find(path)
  if (!found && table.isDirectory(path)) throw pathConflict(path)
  return found
}

/** A file to store, with the time of creation where that is neither the one of the file before nor now. */
type StoringFile = NewFile & { createdAt?: string }

function store(
  { table, dates }: Target,
  {
    before,
    file,
    freed,
  }: { before: StoredFile | undefined; file: StoringFile; freed: FreedContents },
): FileRow {
  const updatedAt = dates.of(before?.updatedAt)
  const row = rowOf({ createdAt: updatedAt, ...before, ...file, updatedAt })
  if (before) table.replace(before, row, freed)
  else if (!table.add(row, freed)) throw pathConflict(row.path)
  return row
}

function removeAll(target: Target, paths: string[], conditions: Conditions): Done {
  const freed = new FreedContents()
  for (const row of findAll(target, paths)) {
    if (!holds(conditions, rowOf(row))) throw preconditionFailed(row.path)
    end(target, row, freed)
  }
  const { bytes: bytesFreed, digests } = freed
  return { value: { files: paths.length, bytesFreed }, changed: paths, freed: digests }
}

/** Removes these files. */
export function removeRows(target: Target, rows: StoredFile[]): FreedContents {
  const freed = new FreedContents()
  for (const row of rows) end(target, row, freed)
  return freed
}

function end({ table, dates }: Target, row: StoredFile, freed: FreedContents) {
  dates.end(row.updatedAt)
  table.remove(row, freed)
}

interface Replacement {
  before: StoredFile[]
  files: StoringFile[]
}

/** Stores these files, all but equal ones, and ends those of `before` that are not among them. @throws {HttpError} */
export function replaceFiles(target: Target, { before, files }: Replacement) {
  const { table, quota } = target
  const { storedSize } = table
  const freed = new FreedContents()
  const wanted = new Set(files.map(({ path }) => path))
  // First: a new file may be where a directory was, or the other way round.
  const ended = before.filter(({ path }) => !wanted.has(path))
  for (const row of ended) end(target, row, freed)
  const counts = { added: 0, replaced: 0, removed: ended.length, unchanged: 0 }
  const rows: FileRow[] = []
  for (const file of files) {
    const row = findAt(table, file.path)
    if (row?.digest === file.digest) {
      counts.unchanged += 1
      continue
    }
    counts[row ? 'replaced' : 'added'] += 1
    rows.push(store(target, { before: row, file, freed }))
  }
  if (quota !== undefined && table.storedSize > Math.max(quota, storedSize))
    throw quotaExceeded(quota)
  const changed = [...ended, ...rows].map(({ path }) => path)
  return { ...counts, rows, changed, freed: freed.digests }
}

/** @throws {HttpError} 404 that names those that are not there */
function findAll({ table }: Target, paths: string[]): StoredFile[] {
  const [missing, ...others] = paths.filter((path) => !table.find(path))
  if (missing !== undefined) throw fileNotFound(missing, ...others)
  return paths.flatMap((path) => table.find(path) ?? [])
}

function moveFiles(target: Target, moves: FileMove[]): Done {
  const rows = findAll(
    target,
    moves.map(({ from }) => from),
  )
  const moving = rows.flatMap((row, at) => {
    const { from, to, overwrite, type } = moves[at] as FileMove // One for each.
    if (type && row.digest !== type.digest) throw preconditionFailed(from)
    return from === to ? [] : { row, file: { ...row, ...type, path: to }, overwrite }
  })
  const { digests } = relocate(target, moving)
  const changed = moving.flatMap(({ row, file }) => [row.path, file.path])
  return { value: moving.length, freed: digests, changed }
}

/** Moves these files below a directory. @throws {HttpError} */
export const moveRows = (target: Target, rows: StoredFile[], move: DirectoryMove): FreedContents =>
  relocate(
    target,
    rows.map((row) => {
      return { row, file: { ...row, path: movedPath(row.path, move) }, overwrite: move.overwrite }
    }),
  )

interface Relocation {
  row: StoredFile
  file: FileRow
  overwrite: boolean
}

// All leave before the first arrives: a directory can move up into its own parent, and files can change places.
function relocate(target: Target, moving: Relocation[]): FreedContents {
  const freed = new FreedContents()
  for (const { row } of moving) end(target, row, freed)
  const existing = moving.filter(
    ({ file, overwrite }) => !overwrite && target.table.find(file.path) !== undefined,
  )
  if (existing.length > 0) throw targetExists(existing.map(({ file }) => file.path))
  for (const { file } of moving) {
    readPath(file.path)
    place(target, file, freed)
  }
  return freed
}

/** Where a file below the directory goes. */
export function movedPath(path: string, { from, to }: DirectoryMove): string {
  const rest = from === '' ? path : path.slice(from.length + 1)
  return to === '' ? rest : `${to}/${rest}`
}

/** A directory cannot move to a place below itself. */
export const isIntoItself = ({ from, to }: DirectoryMove) =>
  from === '' || to.startsWith(`${from}/`)

// The time of the change is now: a cache that knows the previous file at this path must not take it for unmodified.
function place(target: Target, file: FileRow, freed: FreedContents) {
  const { table, dates } = target
  const existing = findAt(table, file.path)
  if (existing) end(target, existing, freed)
  if (!table.add({ ...file, updatedAt: dates.of(existing?.updatedAt) }, freed))
    throw pathConflict(file.path)
}

/**
 * The dates that the changes of a transaction give to files, as ISO 8601. At one path they never go backwards, whatever the
 * clock does, and no two rows share a second that a client can have seen: a client that asks by date, in whole seconds (RFC
 * 9110, 8.8.2), must not take a new file for the one it has.
 */
export class ChangeDates {
  readonly #clock: string
  #latest: string

  /** `latest`: the latest date that the catalog knows. */
  constructor(nowMs: number, latest: string) {
    this.#clock = new Date(nowMs).toISOString()
    this.#latest = latest
  }

  get latest(): string {
    return this.#latest
  }

  /** The date of a file that is stored now, at the path of one with the date `before`. */
  of(before?: string): string {
    const isBehind = this.#clock < this.#latest
    const now = isBehind ? this.#latest : this.#clock
    const date = isBehind && before && secondOf(before) >= secondOf(now) ? nextSecond(before) : now
    this.atLeast(date)
    return date
  }

  /** A date that a file has already. */
  atLeast(date: string): void {
    if (date > this.#latest) this.#latest = date
  }

  /** A file with this date ends: one that is stored at its path later gets a later date. */
  end(before: string): void {
    this.of(before)
  }
}

const secondOf = (date: string) => date.slice(0, 19)

const nextSecond = (date: string) =>
  new Date((Math.floor(Date.parse(date) / 1000) + 1) * 1000).toISOString()
