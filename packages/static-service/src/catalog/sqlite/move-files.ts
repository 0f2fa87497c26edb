import type { FileRow } from '../../files/file-record.ts'
import { findPathFault } from '../../files/path-rules.ts'
import { type MoveFileCommand, type Outcome, Rejected } from '../commands.ts'
import { type FileRows, FreedContents } from './file-rows.ts'

/** @throws {Rejected} */
export function moveFile(rows: FileRows, command: MoveFileCommand, now: string): Outcome {
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

interface DirectoryMove {
  from: string
  to: string
  overwrite: boolean
}

/**
 * Moves every file below a directory. All leave before the first arrives: a directory can move up into its own parent.
 * @throws {Rejected}
 */
export function moveDirectory(rows: FileRows, move: DirectoryMove, now: string): Outcome {
  const { from, to, overwrite } = move
  if (!rows.isDirectory(from)) throw new Rejected('directory_not_found', from)
  if (from === to) return { done: 'move', files: 0, freed: [], changed: [] }
  if (from === '' || to.startsWith(`${from}/`)) throw new Rejected('move_into_itself', to)
  const moving = rows.findBelow(from)
  const freed = new FreedContents()
  for (const row of moving) rows.remove(row, freed)
  for (const row of moving) {
    const rest = row.path.slice(from.length + 1)
    const path = to === '' ? rest : `${to}/${rest}`
    if (findPathFault(path)) throw new Rejected('invalid_target', path)
    place(rows, { ...row, path, updatedAt: now }, { overwrite, freed })
  }
  return { done: 'move', files: moving.length, freed: freed.digests, changed: 'all' }
}

interface Placement {
  overwrite: boolean
  freed: FreedContents
}

// The time of the change is now: a cache that knows the previous file at this path must not take it for unmodified.
function place(rows: FileRows, row: FileRow, { overwrite, freed }: Placement) {
  const existing = rows.find(row.path)
  if (existing && !overwrite) throw new Rejected('target_exists', row.path)
  if (existing) rows.remove(existing, freed)
  if (rows.isDirectory(row.path) || !rows.add(row, freed)) {
    throw new Rejected('path_conflict', row.path)
  }
}
