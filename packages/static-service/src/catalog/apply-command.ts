import type { FileRow, NewFile } from '../files/file-record.ts'
import { type Conditions, holds } from '../rfc9110/entity-tags.ts'
import { type CatalogCommand, type Outcome, type PutCommand, Rejected } from './commands.ts'
import { type FileTable, FreedContents } from './file-table.ts'
import { moveDirectory, moveFile } from './move-files.ts'

/** Commands on files whose rows fit into memory. */
export type FileCommand = Exclude<CatalogCommand, { kind: 'removeBelow' | 'record' }>

/**
 * Applies a command. If it throws, the caller rolls back what it has changed.
 * @throws {Rejected}
 */
export function applyCommand(table: FileTable, command: FileCommand, now: string): Outcome {
  switch (command.kind) {
    case 'put':
      return put(table, command, now)
    case 'remove':
      return remove(table, [command.path], command.conditions)
    case 'removeAll':
      return remove(table, command.paths)
    case 'moveFile':
      return moveFile(table, command, now)
    case 'moveDirectory':
      return moveDirectory(table, command, now)
  }
}

function put(table: FileTable, { files, conditions, quota }: PutCommand, now: string): Outcome {
  const freed = new FreedContents()
  let wasNew = true
  const rows = files.map((file) => {
    const before = table.find(file.path)
    if (!before && table.isDirectory(file.path)) throw new Rejected('path_conflict', file.path)
    if (!holds(conditions, before)) throw new Rejected('precondition_failed', file.path)
    if (before) wasNew = false
    const change = { table, now, freed }
    return before ? replace(before, file, change) : add(file, change)
  })
  if (quota !== undefined && table.storedSize > quota) throw new Rejected('quota_exceeded', '')
  const changed = files.map(({ path }) => path)
  return { done: 'put', rows, wasNew, freed: freed.digests, changed }
}

interface Change {
  table: FileTable
  now: string
  freed: FreedContents
}

function add(file: NewFile, { table, now, freed }: Change): FileRow {
  const row = table.add({ ...file, createdAt: now, updatedAt: now }, freed)
  if (!row) throw new Rejected('path_conflict', file.path)
  return row
}

function replace(before: FileRow, file: NewFile, { table, now, freed }: Change): FileRow {
  const row = { ...before, ...file, updatedAt: now }
  table.replace(before, row, freed)
  return row
}

function remove(table: FileTable, paths: string[], conditions: Conditions = {}): Outcome {
  const freed = new FreedContents()
  for (const path of paths) {
    const row = table.find(path)
    if (!row) throw new Rejected('file_not_found', path)
    if (!holds(conditions, row)) throw new Rejected('precondition_failed', path)
    table.remove(row, freed)
  }
  return { done: 'remove', files: paths.length, changed: paths, ...summarize(freed) }
}

/** What a removal reports about the contents that it freed. */
export const summarize = (freed: FreedContents) => ({
  bytesFreed: freed.bytes,
  freed: freed.digests,
})
