import { appendEvents } from '@domains-and-files/events'
import { name, one, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { directoryNotFound, moveIntoItself } from '../../errors.ts'
import { readEntry } from '../history/change-log.ts'
import { below, selected } from '../records.ts'
import { type ChangeCause, type StoredFile, storedColumns } from '../tables.ts'
import { type DirectoryMove, exchange, isIntoItself, movedPath, relocate } from './file-changes.ts'
import type { Group, Removed } from './group.ts'
import { fileEventOf, loadFiles, writeChanges } from './stored-rows.ts'

/** A change of all files below a directory, in one transaction or in slices. */
export interface DirectoryChange extends Omit<DirectoryMove, 'to'> {
  /** Null: a deletion. */
  to: string | null
  cause: ChangeCause
}

/** Moves or removes all files below a directory; undefined: they are too many for one transaction. */
export async function changeBelow(group: Group, change: DirectoryChange): Promise<Removed | undefined> {
  const { from, to } = change
  const within = `${from}/${from.slice(to ? to.length + 1 : 0).split('/')[0]}`
  const table = await loadFiles(group, [from, within])
  const count = table.directories.get(from)?.files
  if (count === undefined) throw directoryNotFound(from)
  if (from === to) return { files: 0, bytes: 0, bytesFreed: 0 }
  if (to !== null && isIntoItself({ from, to })) throw moveIntoItself(to)
  // If files move up to paths that others still occupy, no slice can run before the rest.
  const isTaken = (table.files.get(within) ?? table.directories.get(within)) !== undefined
  const isUp = to !== null && (to === '' || from.startsWith(`${to}/`))
  const isDivisible = !(isUp && isTaken)
  if (count > group.rules.wholeFiles && isDivisible) return undefined
  return changeThese(group, await loadBelow(group.transaction, from, { limit: count }), change)
}

interface Slice {
  limit: number
  /** Only files after this path. */
  after?: string
  /** Only files that were made before this change. */
  before?: number
}

/** Files below a directory (the root is empty), by path. */
export function loadBelow(
  transaction: SqlTransaction,
  directory: string,
  { limit, after = '', before = Number.MAX_SAFE_INTEGER }: Slice,
): Promise<StoredFile[]> {
  return transaction.all<StoredFile>(
    sql`select ${selected(storedColumns)} from ${name('files')}
      where ${below(directory)} and path > ${after} and change_id < ${before} order by path limit ${limit}`,
  )
}

/**
 * Applies the slice of a change after a path, and writes nothing: a move in slices that cannot be completed should not
 * begin. Returns the path of its last file; undefined: no file follows.
 * @throws {HttpError} what the slice would throw.
 */
export async function rehearse(
  group: Group,
  { change, after }: { change: DirectoryChange; after: string },
): Promise<string | undefined> {
  const limit = group.rules.sliceFiles
  const rows = await loadBelow(group.transaction, change.from, { limit, after })
  await applyToThese(group, rows, change)
  return rows[limit - 1]?.path
}

async function changeThese(group: Group, rows: StoredFile[], change: DirectoryChange): Promise<Removed> {
  const table = await applyToThese(group, rows, change)
  const { bytesFreed } = table
  const entry = table.accept(change.cause)
  await writeChanges(group)
  return { files: rows.length, bytes: entry?.bytes ?? 0, bytesFreed }
}

async function applyToThese(group: Group, rows: StoredFile[], { from, to, overwrite }: DirectoryChange) {
  const paths = rows.map(({ path }) => path)
  if (to === null) {
    const table = await loadFiles(group, paths)
    exchange(table, rows)
    return table
  }
  const moving = rows.map((row) => ({ row, file: { ...row, path: movedPath(row.path, { from, to }) }, overwrite }))
  const table = await loadFiles(group, [...paths, ...moving.map(({ file }) => file.path)])
  relocate(table, moving)
  return table
}

/** Records a change before its first slice, so that it is completed after a crash. Assigns the number of the change. */
export async function begin(
  { transaction, nowMs }: Group,
  { from, to, overwrite, cause }: DirectoryChange,
): Promise<number> {
  const { id } = await one<{ id: number }>(
    transaction,
    sql`update ${name('catalog')} set last_change = last_change + 1 returning last_change id`,
  )
  await transaction.run(sql`insert into ${name('unfinished_changes')}
      (id, directory, target, overwrite, cause, touched_at)
    values (${id}, ${from}, ${to}, ${overwrite}, ${JSON.stringify(cause)}, ${nowMs})`)
  return id
}

/** Carries out the next slice of a change that was begun; undefined: another process has ended it. */
export async function continueChange(group: Group, { id }: { id: number }) {
  const { transaction, nowMs, rules } = group
  const limit = rules.sliceFiles
  const change = await transaction.get<Pick<DirectoryChange, 'from' | 'to'> & { overwrite: number; cause: string }>(
    sql`select directory "from", target "to", overwrite, cause from ${name('unfinished_changes')} where id = ${id}`,
  )
  if (!change) return undefined
  const rows = await loadBelow(transaction, change.from, { limit, before: id })
  const isLast = rows.length < limit
  await transaction.run(sql`update ${name('unfinished_changes')} set touched_at = ${nowMs} where id = ${id}`)
  group.table.recordedAs = id
  const [overwrite, cause] = [change.overwrite === 1, JSON.parse(change.cause)]
  const done = await changeThese(group, rows, { ...change, overwrite, cause })
  if (isLast) await abandon(group, { id })
  return { ...done, isLast }
}

/** Ends a change in slices, complete or not. */
export async function abandon({ transaction }: Group, { id }: { id: number }): Promise<void> {
  const ended = await transaction.get<{ directory: string; target: string | null }>(
    sql`delete from ${name('unfinished_changes')} where id = ${id} returning directory, target`,
  )
  const entry = ended && (await readEntry(transaction, id))
  if (entry) {
    const directories = [ended.directory, ended.target].flatMap((each) => each ?? []).map((each) => each && `${each}/`)
    await appendEvents(transaction, [fileEventOf(entry, directories, true)])
  }
}
