import * as errors from '../../errors.ts'
import { readPath } from '../../files/file-path.ts'
import type { FileRow, NewFile } from '../../files/file-record.ts'
import { type Conditions, holds } from '../../rfc9110/entity-tags.ts'
import { causeOf } from './change-entry.ts'
import type { DirectoryMove, Done, FileCommand, FileMove, PutCommand } from './commands.ts'
import { type LoadedFiles, rowOf, type StoredFile } from './loaded-files.ts'

/**
 * Applies a command, and records its effect as a change. If it throws, the caller must undo its row changes.
 * @throws {HttpError}
 */
export function applyCommand(table: LoadedFiles, command: FileCommand): Done {
  const [action, done] =
    command.kind === 'put'
      ? (['upload', put(table, command)] as const)
      : command.kind === 'remove'
        ? (['delete', removeAll(table, command.paths, command.conditions)] as const)
        : (['move', moveFiles(table, command.moves)] as const)
  table.accept(causeOf(command.actor, action))
  return done
}

function put(table: LoadedFiles, { files, conditions }: PutCommand): Done {
  const { quota } = table.loaded
  const before = files.map(({ path }) => table.find(path))
  const unmet = files.flatMap(({ path }, at) => (meets(conditions, before[at]) ? [] : path))
  const rows = exchange(table, [], files)
  if (unmet.length > 0) throw errors.preconditionFailed(...unmet)
  if (quota !== undefined && table.sizes.stored > quota) throw errors.quotaExceeded(quota)
  const wasNew = before.every((row) => row === undefined)
  const changed = files.map(({ path }) => path)
  return { value: { rows, wasNew }, changed }
}

const meets = (conditions: Conditions, row: StoredFile | undefined) =>
  holds(conditions, row && rowOf(row))

/** A file to store. `createdAt` overrides the creation time of the replaced file, or now. */
type StoringFile = NewFile & { createdAt?: string }

/**
 * The primitive of every change of files: ends `ended`, then stores `files`, each replacing the file at its path. So a
 * file can replace a directory, a directory can move up into its own parent, and files can swap paths.
 * @throws {HttpError} `path_conflict`
 */
export function exchange(table: LoadedFiles, ended: StoredFile[], files: StoringFile[] = []) {
  const { dates } = table.loaded
  for (const row of ended) {
    dates.end(row.updatedAt)
    table.remove(row)
  }
  const rows = files.map((file) => {
    const before = table.find(file.path)
    if (!before && table.isDirectory(file.path)) throw errors.pathConflict(file.path)
    // A moved file also gets a new date: a cache with the previous file of this path must not see it as unmodified.
    const updatedAt = dates.of(before?.updatedAt)
    const row = rowOf({ createdAt: updatedAt, ...before, ...file, updatedAt })
    if (before) table.replace(before, row)
    else if (!table.add(row)) throw errors.pathConflict(row.path)
    return row
  })
  return rows
}

function removeAll(table: LoadedFiles, paths: string[], conditions: Conditions): Done {
  const rows = findAll(table, paths)
  const unmet = rows.find((row) => !meets(conditions, row))
  if (unmet) throw errors.preconditionFailed(unmet.path)
  exchange(table, rows)
  return { value: { files: paths.length, bytesFreed: table.bytesFreed }, changed: paths }
}

interface Replacement {
  before: StoredFile[]
  files: StoringFile[]
}

/** Stores these files except unchanged ones, and ends the other files of `before`. @throws {HttpError} */
export function replaceFiles(table: LoadedFiles, { before, files }: Replacement) {
  const { quota, storedSize } = table.loaded
  const wanted = new Set(files.map(({ path }) => path))
  const ended = before.filter(({ path }) => !wanted.has(path))
  const differing = files.filter(({ path, digest }) => table.find(path)?.digest !== digest)
  const replaced = differing.filter(({ path }) => table.find(path) !== undefined).length
  const rows = exchange(table, ended, differing)
  if (quota !== undefined && table.sizes.stored > Math.max(quota, storedSize))
    throw errors.quotaExceeded(quota)
  const changed = [...ended, ...rows].map(({ path }) => path)
  const counts = { replaced, removed: ended.length, added: rows.length - replaced }
  return { ...counts, unchanged: files.length - rows.length, rows, changed }
}

/** @throws {HttpError} 404 that names the missing paths */
function findAll(table: LoadedFiles, paths: string[]): StoredFile[] {
  const [missing, ...others] = paths.filter((path) => !table.find(path))
  if (missing !== undefined) throw errors.fileNotFound(missing, ...others)
  return paths.flatMap((path) => table.find(path) ?? [])
}

function moveFiles(table: LoadedFiles, moves: FileMove[]): Done {
  const rows = findAll(
    table,
    moves.map(({ from }) => from),
  )
  const moving = rows.flatMap((row, at) => {
    const { from, to, overwrite, type } = moves[at] as FileMove // One for each.
    if (type && row.digest !== type.digest) throw errors.preconditionFailed(from)
    return from === to ? [] : { row, file: { ...row, ...type, path: to }, overwrite }
  })
  relocate(table, moving)
  const changed = moving.flatMap(({ row, file }) => [row.path, file.path])
  return { value: moving.length, changed }
}

interface Relocation {
  row: StoredFile
  file: FileRow
  overwrite: boolean
}

/** Moves files. @throws {HttpError} */
export function relocate(table: LoadedFiles, moving: Relocation[]): void {
  const leaving = new Set(moving.map(({ row }) => row.path))
  const existing = moving.flatMap(({ file: { path }, overwrite }) =>
    overwrite || leaving.has(path) || !table.find(path) ? [] : path,
  )
  if (existing.length > 0) throw errors.targetExists(existing)
  for (const { file } of moving) readPath(file.path)
  const rows = moving.map(({ row }) => row)
  const files = moving.map(({ file }) => file)
  exchange(table, rows, files)
}

type Below = Pick<DirectoryMove, 'from' | 'to'>

/** The new path of a file below a moved directory. */
export function movedPath(path: string, { from, to }: Below): string {
  const rest = from === '' ? path : path.slice(from.length + 1)
  return to === '' ? rest : `${to}/${rest}`
}

/** A directory cannot move to a place below itself. */
export const isIntoItself = ({ from, to }: Below) => from === '' || to.startsWith(`${from}/`)
