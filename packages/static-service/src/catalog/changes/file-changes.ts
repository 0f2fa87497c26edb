import { hash } from 'node:crypto'
import type { TagList } from '@domains-and-files/http'
import * as errors from '../../errors.ts'
import { readPath } from '../../files/file-path.ts'
import { type Actor, type FileRow, type NewFile, nobody, type StoredFile, type VersionRow } from '../tables.ts'
import type { Removed } from './group.ts'
import { dateFor, type LoadedFiles, rowOf } from './loaded-files.ts'

// Changes of files in memory. If one throws, the caller must undo its row changes.

interface Named {
  conditions?: Conditions
  actor?: Actor
}

/**
 * Stores these files; each replaces the file at its path. Their blobs must already be stored.
 * @throws {HttpError} `path_conflict`, `precondition_failed` or `quota_exceeded`.
 */
export function put(
  table: LoadedFiles,
  { files, conditions = {}, actor = nobody }: Named & { files: NewFile[] },
): { rows: FileRow[]; wasNew: boolean } {
  const { quota, missing } = table
  const { storedSize } = table.counts
  if (files.some(({ digest }) => missing.has(digest))) throw errors.contentMissing()
  const before = files.map(({ path }) => table.files.get(path))
  const unmet = files.flatMap(({ path }, at) => {
    const row = before[at]
    return holds(conditions, row && rowOf(row)) ? [] : path
  })
  const rows = exchange(table, [], files)
  if (unmet.length > 0) throw (mustBeNew(conditions) ? errors.fileExists : errors.preconditionFailed)(...unmet)
  if (table.counts.storedSize > Math.max(quota, storedSize)) throw errors.quotaExceeded(quota)
  table.accept({ ...actor, action: 'upload' })
  return { rows, wasNew: before.every((row) => row === undefined) }
}

/** A file to store. `createdAt` overrides the creation time of the replaced file, or now. */
type StoringFile = NewFile & { createdAt?: string }

/**
 * The primitive of every change of files: ends `ended`, then stores `files`, each replacing the file at its path. So a
 * file can replace a directory, a directory can move up into its own parent, and files can swap paths.
 * @throws {HttpError} `path_conflict`
 */
export function exchange(table: LoadedFiles, ended: StoredFile[], files: StoringFile[] = []) {
  const { dates } = table
  for (const row of ended) {
    dateFor(dates, row.updatedAt) // A later file at its path gets a later date.
    table.set(row.path, undefined)
  }
  return files.map((file) => {
    const before = table.files.get(file.path)
    if (!before && table.isBlocked(file.path)) throw errors.pathConflict(file.path)
    // A moved file also gets a new date: a cache with the previous file of this path must not see it as unmodified.
    const updatedAt = dateFor(dates, before?.updatedAt)
    const row = rowOf({ createdAt: updatedAt, ...before, ...file, updatedAt })
    table.set(row.path, row)
    return row
  })
}

/** Removes these files, or none. @throws {HttpError} `file_not_found` or `precondition_failed`. */
export function remove(
  table: LoadedFiles,
  { paths, conditions = {}, actor = nobody }: Named & { paths: string[] },
): Removed {
  const rows = findAll(table, paths)
  const unmet = rows.find((row) => !holds(conditions, rowOf(row)))
  if (unmet) throw errors.preconditionFailed(unmet.path)
  exchange(table, rows)
  const { bytesFreed } = table
  const change = table.accept({ ...actor, action: 'delete' })
  return { files: paths.length, bytes: change?.bytes ?? 0, bytesFreed }
}

/** Stores these files except unchanged ones, and ends the other files of `before`. @throws {HttpError} */
export function replaceFiles(table: LoadedFiles, { before, files }: { before: StoredFile[]; files: StoringFile[] }) {
  const { quota } = table
  const { storedSize } = table.counts
  const wanted = new Set(files.map(({ path }) => path))
  const ended = before.filter(({ path }) => !wanted.has(path))
  const differing = files.filter(({ path, digest }) => table.files.get(path)?.digest !== digest)
  const replaced = differing.filter(({ path }) => table.files.get(path) !== undefined).length
  const rows = exchange(table, ended, differing)
  if (table.counts.storedSize > Math.max(quota, storedSize)) throw errors.quotaExceeded(quota)
  const counts = { replaced, removed: ended.length, added: rows.length - replaced }
  return { ...counts, unchanged: files.length - rows.length, rows }
}

/** @throws {HttpError} 404 that names the missing paths */
function findAll(table: LoadedFiles, paths: string[]): StoredFile[] {
  const [missing, ...others] = paths.filter((path) => !table.files.get(path))
  if (missing !== undefined) throw errors.fileNotFound(missing, ...others)
  return paths.flatMap((path) => table.files.get(path) ?? [])
}

/** Of a file; or of all files from one directory to another, where the root is empty. */
export interface DirectoryMove {
  from: string
  to: string
  overwrite: boolean
}

export interface FileMove extends DirectoryMove {
  /** Type under the new name, derived from `digest`. */
  type?: Pick<FileRow, 'digest' | 'contentType' | 'category'> | undefined
}

/**
 * Moves these files, or none; returns their number, or undefined if the digest of one differs from that of its `type`.
 * @throws {HttpError} `file_not_found`, `path_conflict`, `invalid_path` or `reserved_path`.
 */
export function moveFiles(
  table: LoadedFiles,
  { moves, actor = nobody }: { moves: FileMove[]; actor?: Actor },
): number | undefined {
  const rows = findAll(
    table,
    moves.map(({ from }) => from),
  )
  if (moves.some(({ type }, at) => type && type.digest !== rows[at]?.digest)) return undefined
  const moving = rows.flatMap((row, at) => {
    const { from, to, overwrite, type } = moves[at] as FileMove // One for each.
    return from === to ? [] : { row, file: { ...row, ...type, path: to }, overwrite }
  })
  relocate(table, moving)
  table.accept({ ...actor, action: 'move' })
  return moving.length
}

/** Gives each row its new path. @throws {HttpError} */
export function relocate(table: LoadedFiles, moving: { row: StoredFile; file: FileRow; overwrite: boolean }[]): void {
  const leaving = new Set(moving.map(({ row }) => row.path))
  const existing = moving.flatMap(({ file: { path }, overwrite }) =>
    overwrite || leaving.has(path) || !table.files.get(path) ? [] : path,
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

/** Preconditions on a stored file (RFC 9110, 13.1). */
export interface Conditions {
  ifMatch?: TagList | undefined
  ifNoneMatch?: TagList | undefined
  /** In seconds since 1970. */
  ifUnmodifiedSince?: number | undefined
}

/** The entity tag of a record: it changes with every field, and differs while the file is private. */
export function etagOf(record: FileRow | VersionRow, isPublic = true): string {
  const fields = Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1))
  return `"${hash('sha256', JSON.stringify(fields)).slice(0, 32)}${isPublic ? '' : '-private'}"`
}

/**
 * Whether the stored file, if any, meets the conditions (RFC 9110, 13.2.2). Matches the tags of its record and of its
 * bytes; without a file, dates are not compared.
 */
export function holds(conditions: Conditions, row: FileRow | undefined): boolean {
  const { ifMatch, ifNoneMatch, ifUnmodifiedSince } = conditions
  if (ifMatch === undefined && ifUnmodifiedSince !== undefined && row) {
    if (Math.floor(Date.parse(row.updatedAt) / 1000) > ifUnmodifiedSince) return false
  }
  if (ifMatch === undefined && ifNoneMatch === undefined) return true
  return holdsForTags(conditions, row && [etagOf(row), etagOf(row, false), `"${row.digest}"`])
}

/** As `holds`, for what has these tags; undefined: nothing is there. */
export function holdsForTags({ ifMatch, ifNoneMatch }: Conditions, tags: string[] | undefined): boolean {
  const isNamedBy = (list: TagList) => tags !== undefined && (list === '*' || tags.some((tag) => list.includes(tag)))
  if (ifMatch !== undefined && !isNamedBy(ifMatch)) return false
  return ifNoneMatch === undefined || !isNamedBy(ifNoneMatch)
}

/** Whether unmet conditions say that a file exists. */
export const mustBeNew = ({ ifMatch, ifNoneMatch }: Conditions): boolean => ifNoneMatch === '*' && ifMatch === undefined
