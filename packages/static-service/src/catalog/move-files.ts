import type { FileRow } from '../files/file-record.ts'
import { findPathFault } from '../files/path-rules.ts'
import type { DirectoryMove } from './catalog.ts'
import { type MoveFileCommand, type Outcome, Rejected } from './commands.ts'
import { type FileTable, FreedContents } from './file-table.ts'

/** @throws {Rejected} */
export function moveFile(rows: FileTable, command: MoveFileCommand, now: string): Outcome {
  const { from, to, overwrite, digest, contentType, category } = command
  const row = rows.find(from)
  if (!row) throw new Rejected('file_not_found', from)
  if (row.digest !== digest) throw new Rejected('content_changed', from)
  if (from === to) return { done: 'move', files: 0, freed: [], changed: [] }
  const freed = new FreedContents()
  rows.remove(row, freed)
  place(rows, { ...row, path: to, contentType, category, updatedAt: now }, { overwrite, freed })
  return { done: 'move', files: 1, freed: freed.digests, changed: [from, to] }
}

/**
 * Moves every file below a directory. All leave before the first arrives: a directory can move up into its own parent.
 * @throws {Rejected}
 */
export function moveDirectory(rows: FileTable, move: DirectoryMove, now: string): Outcome {
  const { from, to, overwrite } = move
  if (!rows.isDirectory(from)) throw new Rejected('directory_not_found', from)
  if (from === to) return { done: 'move', files: 0, freed: [], changed: [] }
  if (isIntoItself(move)) throw new Rejected('move_into_itself', to)
  const moving = rows.findBelow(from)
  const freed = new FreedContents()
  for (const row of moving) rows.remove(row, freed)
  for (const row of moving) {
    const path = movedPath(row.path, move)
    if (findPathFault(path)) throw new Rejected('invalid_target', path)
    place(rows, { ...row, path, updatedAt: now }, { overwrite, freed })
  }
  return { done: 'move', files: moving.length, freed: freed.digests, changed: 'all' }
}

/** Where a file below the directory goes. */
export function movedPath(path: string, { from, to }: DirectoryMove): string {
  const rest = path.slice(from.length + 1)
  return to === '' ? rest : `${to}/${rest}`
}

/** A directory cannot move to a place below itself. */
export const isIntoItself = ({ from, to }: DirectoryMove) =>
  from === '' || to.startsWith(`${from}/`)

interface Placement {
  overwrite: boolean
  freed: FreedContents
}

// The time of the change is now: a cache that knows the previous file at this path must not take it for unmodified.
function place(rows: FileTable, row: FileRow, { overwrite, freed }: Placement) {
  const existing = rows.find(row.path)
  if (existing && !overwrite) throw new Rejected('target_exists', row.path)
  if (existing) rows.remove(existing, freed)
  if (rows.isDirectory(row.path) || !rows.add(row, freed)) {
    throw new Rejected('path_conflict', row.path)
  }
}
