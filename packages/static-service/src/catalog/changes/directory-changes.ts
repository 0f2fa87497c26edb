import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { directoryNotFound, moveIntoItself, pathConflict, targetExists } from '../../errors.ts'
import { parentOf, readPath } from '../../files/file-path.ts'
import { readEntry } from '../history/change-log.ts'
import { among, below } from '../records.ts'
import { appendFileEvents, type ChangeCause, withSlash } from './change-entry.ts'
import { type DirectoryMove, exchange, isIntoItself, movedPath, relocate } from './file-changes.ts'
import type { Group, Removed } from './group.ts'
import type { StoredFile } from './loaded-files.ts'
import { loadBelow, loadFiles, writeChanges } from './stored-rows.ts'

/** A change of all files below a directory, in one transaction or in slices. */
export interface DirectoryChange {
  directory: string
  /** Null: a deletion. */
  target: string | null
  /** 0 or 1. */
  overwrite: number
  cause: ChangeCause
}

/** Moves or removes all files below a directory; undefined: they are too many for one transaction. */
export async function changeBelow(
  group: Group,
  change: DirectoryChange,
): Promise<Removed | undefined> {
  const { directory: from, target: to } = change
  const within = `${from}/${from.slice(to ? to.length + 1 : 0).split('/')[0]}`
  const table = await loadFiles(group, [from, within])
  if (!table.isDirectory(from)) throw directoryNotFound(from)
  if (from === to) return { files: 0, bytesFreed: 0 }
  if (to !== null && isIntoItself({ from, to })) throw moveIntoItself(to)
  const count = table.countBelow(from)
  // If files move up to paths that others still occupy, no slice can run before the rest.
  const isTaken = table.find(within) !== undefined || table.isDirectory(within)
  const isDivisible = to === null || !isAbove(to, from) || !isTaken
  if (count > group.rules.wholeFiles && isDivisible) return undefined
  return changeThese(group, await loadBelow(group.transaction, from, { limit: count }), change)
}

const isAbove = (directory: string, other: string) =>
  directory === '' || other.startsWith(`${directory}/`)

/** `recordedAs`: the number of the change that this is a slice of. */
async function changeThese(
  group: Group,
  rows: StoredFile[],
  { directory: from, target: to, overwrite, cause }: DirectoryChange,
  recordedAs?: number,
): Promise<Removed> {
  const moving =
    to === null
      ? []
      : rows.map((row) => ({
          row,
          file: { ...row, path: movedPath(row.path, { from, to }) },
          overwrite: overwrite === 1,
        }))
  const paths = [...rows, ...moving.map(({ file }) => file)].map(({ path }) => path)
  const table = await loadFiles(group, paths, { recordedAs })
  if (to === null) exchange(table, rows)
  else relocate(table, moving)
  const { bytesFreed } = table
  table.accept(cause)
  await writeChanges(group, table)
  return { files: rows.length, bytesFreed }
}

/** Records a change before its first slice, so that it is completed after a crash. Assigns the number of the change. */
export async function begin(
  { transaction, nowMs }: Group,
  { directory, target, overwrite, cause }: DirectoryChange,
): Promise<number> {
  const row = await transaction.get<{ id: number }>(
    sql`update ${name('catalog')} set last_change = last_change + 1 returning last_change id`,
  )
  if (!row) throw new Error('the catalog has no row of counts')
  await transaction.run(sql`insert into ${name('unfinished_changes')}
      (id, directory, target, overwrite, cause, touched_at)
    values (${row.id}, ${directory}, ${target}, ${overwrite}, ${JSON.stringify(cause)}, ${nowMs})`)
  return row.id
}

/** Carries out the next slice of a change that was begun. */
export async function continueChange(
  group: Group,
  { id }: { id: number },
): Promise<Removed & { isLast: boolean }> {
  const { transaction, nowMs, rules } = group
  const limit = rules.sliceFiles
  const change = await transaction.get<Omit<DirectoryChange, 'cause'> & { cause: string }>(
    sql`select directory, target, overwrite, cause
      from ${name('unfinished_changes')} where id = ${id}`,
  )
  if (!change) return { files: 0, bytesFreed: 0, isLast: true }
  const rows = await loadBelow(transaction, change.directory, { limit, before: id })
  const isLast = rows.length < limit
  if (!isLast) {
    await transaction.run(
      sql`update ${name('unfinished_changes')} set touched_at = ${nowMs} where id = ${id}`,
    )
  }
  const cause = JSON.parse(change.cause)
  const done = await changeThese(group, rows, { ...change, cause }, id)
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
    const directories = [ended.directory, ended.target].flatMap((each) => each ?? [])
    const event = { entry, directories: directories.map(withSlash), isDeep: true }
    await appendFileEvents(transaction, [event])
  }
}

const batchFiles = 5000

/**
 * Checks whether a directory can be moved in slices, by the current state. Files that the slices move themselves do not
 * conflict.
 * @throws {HttpError}
 */
export function checkMove(database: Pick<Sql, 'snapshot'>, move: DirectoryMove): Promise<void> {
  return database.snapshot(async (transaction) => {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const rows: { path: string }[] = await transaction.all(
        sql`select path from ${name('files')} where ${below(move.from)} and path > ${last}
          order by path limit ${batchFiles}`,
      )
      const targets = rows.map(({ path }) => readPath(movedPath(path, move)))
      await checkTargets(transaction, targets, move)
      last = rows[batchFiles - 1]?.path
    }
  })
}

async function checkTargets(
  transaction: SqlTransaction,
  targets: string[],
  { overwrite }: DirectoryMove,
) {
  const above = [...new Set(targets.flatMap(directoriesOf))]
  const blocked = await transaction.get<{ path: string; isTarget: number }>(sql`
    select path, 0 "isTarget" from ${name('files')} where path ${among(above)}
    union all select path, 0 from ${name('directories')} where path ${among(targets)}
    union all select path, 1 from ${name('files')} where ${overwrite ? sql`1 = 0` : sql`path ${among(targets)}`}
    limit 1`)
  if (blocked)
    throw blocked.isTarget === 1 ? targetExists([blocked.path]) : pathConflict(blocked.path)
}

function directoriesOf(path: string): string[] {
  const above: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
  return above
}
