import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { findPathFault } from '../../files/path-rules.ts'
import { parentOf } from '../../files/path-segments.ts'
import { among } from '../records.ts'
import { isIntoItself, movedPath, moveRows, removeRows } from './apply-command.ts'
import { type ChangeCause, causeOf } from './change-entry.ts'
import type { DirectoryCommand, DirectoryMove, Outcome } from './commands.ts'
import { appendSlicedEvent } from './file-events.ts'
import { below, type Group, loadBelow, loadTarget } from './load-files.ts'
import type { StoredFile } from './loaded-files.ts'
import { writeChanges } from './write-changes.ts'

/** A change of a directory that is carried out in slices. */
interface UnfinishedChange {
  directory: string
  /** Null: a deletion. */
  target: string | null
  /** 0 or 1. */
  overwrite: number
  cause: ChangeCause
}

/** How many files a transaction changes: other changes wait for it. */
export interface SliceLimits {
  /** So many files below a directory are changed as a whole; more in slices. */
  wholeFiles: number
  sliceFiles: number
}

/** Applies a command on all files below a directory: whole, or a slice of it. */
export async function changeDirectory(
  group: Group,
  command: DirectoryCommand,
  { wholeFiles, sliceFiles }: SliceLimits,
): Promise<Outcome> {
  switch (command.kind) {
    case 'removeBelow':
      return removeBelow(group, command, wholeFiles)
    case 'moveDirectory':
      return moveDirectory(group, command, wholeFiles)
    case 'continue':
      return continueChange(group, command.id, sliceFiles)
    case 'abandon':
      return abandon(group, command.id)
  }
}

type Command<Kind> = Extract<DirectoryCommand, { kind: Kind }>

async function removeBelow(
  group: Group,
  { actor, directory, inSlices = false }: Command<'removeBelow'>,
  wholeFiles: number,
): Promise<Outcome> {
  const { table } = await loadTarget(group, [directory])
  if (!table.isDirectory(directory)) return { refused: 'directory_not_found', path: directory }
  const cause = causeOf(actor, 'delete', directory)
  if (inSlices || table.countBelow(directory) > wholeFiles) {
    return begin(group, { directory, target: null, overwrite: 0, cause })
  }
  const rows = await loadBelow(group.transaction, directory, { limit: wholeFiles })
  const { bytes: bytesFreed, digests: freed } = await removeThese(group, rows, { cause })
  return { done: 'remove', files: rows.length, changed: 'all', bytesFreed, freed }
}

interface Recorded {
  cause: ChangeCause
  /** The number of the change that this is a slice of. */
  recordedAs?: number
}

async function removeThese(group: Group, rows: StoredFile[], { cause, recordedAs }: Recorded) {
  const target = await loadTarget(group, pathsOf(rows), { recordedAs })
  const freed = removeRows(target, rows)
  target.table.accept(cause, target.dates.of())
  await writeChanges(group, target)
  return freed
}

async function moveDirectory(
  group: Group,
  { actor, from, to, overwrite, inSlices = false }: Command<'moveDirectory'>,
  wholeFiles: number,
): Promise<Outcome> {
  const within = `${from}/${from.slice(to === '' ? 0 : to.length + 1).split('/')[0]}`
  const { table } = await loadTarget(group, [from, within])
  if (!table.isDirectory(from)) return { refused: 'directory_not_found', path: from }
  if (from === to) return { done: 'move', files: 0, freed: [], changed: [] }
  if (isIntoItself({ from, to, overwrite })) return { refused: 'move_into_itself', path: to }
  const cause = causeOf(actor, 'move')
  if (inSlices) {
    return begin(group, { directory: from, target: to, overwrite: Number(overwrite), cause })
  }
  const count = table.countBelow(from)
  // Where files go up to places that the others are about to leave, no slice could be done before the rest.
  const isDivisible = !isAbove(to, from) || !(table.find(within) || table.isDirectory(within))
  if (count > wholeFiles && isDivisible) return { refused: 'too_many_files', path: from }
  const rows = await loadBelow(group.transaction, from, { limit: count })
  return moveThese(group, rows, { from, to, overwrite, cause })
}

const isAbove = (directory: string, other: string) =>
  directory === '' || other.startsWith(`${directory}/`)

async function moveThese(
  group: Group,
  rows: StoredFile[],
  { cause, recordedAs, ...move }: DirectoryMove & Recorded,
): Promise<Outcome> {
  const targets = rows.map(({ path }) => movedPath(path, move))
  const target = await loadTarget(group, [...pathsOf(rows), ...targets], { recordedAs })
  const freed = moveRows(target, rows, move)
  target.table.accept(cause, target.dates.of())
  await writeChanges(group, target)
  return { done: 'move', files: rows.length, freed: freed.digests, changed: 'all' }
}

const pathsOf = (rows: StoredFile[]) => rows.map(({ path }) => path)

/** Records what is going to be done, so that it is finished after a crash. The number of the change is taken now. */
async function begin(
  { transaction, nowMs }: Group,
  { directory, target, overwrite, cause }: UnfinishedChange,
): Promise<Outcome> {
  const row = await transaction.get<{ id: number }>(
    sql`update ${name('catalog')} set last_change = last_change + 1 returning last_change id`,
  )
  if (!row) throw new Error('the catalog has no row of counts')
  await transaction.run(sql`insert into ${name('unfinished_changes')}
      (id, directory, target, overwrite, cause, touched_at)
    values (${row.id}, ${directory}, ${target}, ${overwrite}, ${JSON.stringify(cause)}, ${nowMs})`)
  return { done: 'begun', id: row.id }
}

async function continueChange(group: Group, id: number, limit: number): Promise<Outcome> {
  const { transaction, nowMs } = group
  const change = await transaction.get<Omit<UnfinishedChange, 'cause'> & { cause: string }>(
    sql`select directory, target, overwrite, cause
      from ${name('unfinished_changes')} where id = ${id}`,
  )
  if (!change)
    return { done: 'slice', files: 0, bytesFreed: 0, freed: [], changed: [], isLast: true }
  const { directory } = change
  const recorded = { cause: JSON.parse(change.cause), recordedAs: id }
  const rows = await loadBelow(transaction, directory, { limit, before: id })
  const isLast = rows.length < limit
  if (!isLast) {
    await transaction.run(
      sql`update ${name('unfinished_changes')} set touched_at = ${nowMs} where id = ${id}`,
    )
  }
  const outcome = await changeSlice(group, rows, { ...change, ...recorded, isLast })
  if (isLast && 'done' in outcome) await abandon(group, id)
  return outcome
}

interface Slice extends Required<Recorded>, Omit<UnfinishedChange, 'cause'> {
  isLast: boolean
}

async function changeSlice(group: Group, rows: StoredFile[], slice: Slice): Promise<Outcome> {
  const { directory, target, isLast, cause, recordedAs } = slice
  const recorded = { cause, recordedAs }
  const files = rows.length
  if (target === null) {
    const { bytes: bytesFreed, digests: freed } = await removeThese(group, rows, recorded)
    return { done: 'slice', files, bytesFreed, freed, changed: 'all', isLast }
  }
  const move = { from: directory, to: target, overwrite: slice.overwrite === 1, ...recorded }
  const moved = await moveThese(group, rows, move)
  if (!('done' in moved) || moved.done !== 'move') return moved
  return { done: 'slice', files, bytesFreed: 0, freed: moved.freed, changed: 'all', isLast }
}

/** Ends a change in slices, whether all of it was done or not. */
async function abandon({ transaction }: Group, id: number): Promise<Outcome> {
  const ended = await transaction.get<{ directory: string; target: string | null }>(
    sql`delete from ${name('unfinished_changes')} where id = ${id} returning directory, target`,
  )
  if (ended)
    await appendSlicedEvent(transaction, { id, directories: [ended.directory, ended.target] })
  return { done: 'other' }
}

const batchFiles = 5000

/**
 * Why a directory cannot be moved in slices, as far as can be told now; undefined: it can. What the slices move themselves is
 * not in the way.
 */
export function findMoveRefusal(
  database: Pick<Sql, 'snapshot'>,
  move: DirectoryMove,
): Promise<Outcome | undefined> {
  return database.snapshot(async (transaction) => {
    for (let last = ''; ; ) {
      const rows = await transaction.all<{ path: string }>(
        sql`select path from ${name('files')} where ${below(move.from)} and path > ${last}
          order by path limit ${batchFiles}`,
      )
      const targets = rows.map(({ path }) => movedPath(path, move))
      const refusal = await findRefusal(transaction, targets, move)
      if (refusal || rows.length < batchFiles) return refusal
      last = rows.at(-1)?.path ?? ''
    }
  })
}

async function findRefusal(
  transaction: SqlTransaction,
  targets: string[],
  { overwrite }: DirectoryMove,
): Promise<Outcome | undefined> {
  const faulty = targets.find((path) => findPathFault(path))
  if (faulty !== undefined) return { refused: 'invalid_target', path: faulty }
  const above = [...new Set(targets.flatMap(directoriesOf))]
  const blocked = await transaction.get<{ path: string; isTarget: number }>(sql`
    select path, 0 "isTarget" from ${name('files')} where path ${among(above)}
    union all select path, 0 from ${name('directories')} where path ${among(targets)}
    union all select path, 1 from ${name('files')} where ${overwrite ? sql`1 = 0` : sql`path ${among(targets)}`}
    limit 1`)
  if (!blocked) return undefined
  return { refused: blocked.isTarget === 1 ? 'target_exists' : 'path_conflict', path: blocked.path }
}

function directoriesOf(path: string): string[] {
  const above: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
  return above
}
