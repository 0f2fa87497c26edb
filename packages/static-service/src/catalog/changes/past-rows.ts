import { type BlobRef, name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { contentMissing, fileNotFound, quotaExceeded } from '../../errors.ts'
import { readRecordedFiles } from '../history/change-log.ts'
import { among, columnNames, columns, type RowOf, recordsOf, selected } from '../records.ts'
import { type Actor, pastColumns } from '../tables.ts'
import { markIncomplete } from '../versions.ts'
import { exchange } from './file-changes.ts'
import type { Group, Removed } from './group.ts'
import { loadFiles, writeChanges } from './stored-rows.ts'

/** The columns of a past file that pruning needs. */
const endedColumns = columns({ path: 'text', changeId: 'bigint', endedBy: 'bigint', digest: 'text', size: 'bigint' })

type PastRow = RowOf<typeof endedColumns>

const keyRecords = recordsOf({ path: 'text', changeId: 'bigint' })

const batchRows = 1000
const dayMs = 86_400_000

/** Removes up to 1,000 rows of expired past; with `need`, of the oldest past of this size or more, up to so many bytes. */
export async function prune(
  group: Group,
  { need, minSize = 0 }: { need?: number; minSize?: number },
): Promise<{ rows: number; isLast: boolean }> {
  const { transaction, nowMs, rules } = group
  const timeBefore = (days: number) => new Date(nowMs - days * dayMs).toISOString()
  const expired = sql`ended_at < ${timeBefore(rules.keepDays)} and ${isShownByNone(rules.keepVersions)}`
  const some =
    need === undefined ? await readOldest(transaction, expired) : await readDroppable(transaction, need, { minSize })
  await drop(group, some)
  const { entryDays, keepDays } = rules
  const hasMore =
    need === undefined && entryDays > 0 && (await removeEntries(transaction, timeBefore(Math.max(entryDays, keepDays))))
  return { rows: some.length, isLast: some.length < batchRows && !hasMore }
}

/**
 * Removes the oldest past until `excess` bytes are freed or no past is left; returns the bytes still missing.
 * `keepsContents`: spares blobs that are kept without a file.
 */
export async function dropOldest(group: Group, excess: number, { keepsContents = false } = {}): Promise<number> {
  for (let left = excess; left > 0; ) {
    const rows = await readDroppable(group.transaction, left, { keepsContents })
    if (rows.length === 0) return left
    left -= await drop(group, rows)
  }
  return 0
}

// Blobs kept without a file are dropped last: they wait for a manifest.
async function readDroppable(
  transaction: SqlTransaction,
  bytes: number,
  { keepsContents = false, minSize = 0 } = {},
): Promise<PastRow[]> {
  const isLarge = sql`size >= ${minSize}`
  const past = await readOldest(transaction, sql`change_id > 0 and ${isLarge}`)
  const isNone = past.length === 0 && !keepsContents
  const rows = isNone ? await readOldest(transaction, sql`change_id = 0 and ${isLarge}`) : past
  return upTo(rows, bytes)
}

async function drop(group: Group, rows: PastRow[]): Promise<number> {
  await markIncomplete(group.transaction, rows)
  return removePast(group, rows)
}

const readPast = (transaction: SqlTransaction, condition: Statement) =>
  transaction.all<PastRow>(sql`select ${selected(endedColumns)} from ${name('past_files')} past where ${condition}`)

const readOldest = (transaction: SqlTransaction, condition: Statement) =>
  readPast(transaction, sql`${condition} order by ended_at limit ${batchRows}`)

// Versions show the rows that their change left.
const isShownByNone = (versions: number) =>
  sql`not exists (
    select 1 from (select change_id from ${name('versions')} order by id desc limit ${versions}) version
    where version.change_id >= past.change_id and version.change_id < past.ended_by)`

// A row frees its size, or nothing if its blob is used elsewhere: so the first rows never free too much.
function upTo(rows: PastRow[], bytes: number): PastRow[] {
  let sum = 0
  const end = rows.findIndex(({ size }) => {
    sum += size
    return sum >= bytes
  })
  return end === -1 ? rows : rows.slice(0, end + 1)
}

/** Returns the bytes of the blobs that became unreferenced. */
async function removePast(group: Group, rows: PastRow[]): Promise<number> {
  if (rows.length === 0) return 0
  const table = await loadFiles(group, [], { digests: rows.map(({ digest }) => digest) })
  const { pastSize } = table.counts
  await group.transaction.run(sql`delete from ${name('past_files')} where (path, change_id) in (
    select path, change_id from ${keyRecords(rows)})`)
  for (const row of rows) table.refer(row, { past: -1 })
  table.accept(undefined)
  return pastSize - table.counts.pastSize
}

/** Removes entries before this time; returns whether more are left. */
async function removeEntries(transaction: SqlTransaction, time: string): Promise<boolean> {
  const old = await transaction.all<{ id: number }>(
    sql`select id from ${name('changes')} where at < ${time} order by id limit ${batchRows}`,
  )
  const last = old.at(-1)?.id
  if (last === undefined) return false
  await transaction.run(sql`delete from ${name('changed_files')} where change_id <= ${last}`)
  await transaction.run(sql`delete from ${name('changes')} where id <= ${last}`)
  return old.length === batchRows
}

/**
 * Keeps durable blobs without a file for a caller, for a day, until a manifest names them. Each has a past row that no
 * change shows (see `keptPath`), so that quota, pruning, checks and backups cover it. Its end date makes pruning remove
 * it after a day.
 * @throws {HttpError} `quota_exceeded` if they are limited and, with the current files, exceed the quota.
 */
export async function keepContents(
  group: Group,
  { contents, callerId, isLimited }: { contents: BlobRef[]; callerId: string; isLimited: boolean },
): Promise<void> {
  const { transaction, nowMs, rules, table } = group
  const { counts, missing, quota } = table
  const endedAt = new Date(nowMs + (1 - rules.keepDays) * dayMs).toISOString()
  const unseen = { changeId: 0, endedBy: 0, endedAt }
  const empty = { contentType: '', category: '', uploadedBy: '', createdAt: '', updatedAt: '' }
  const rows = contents.map((blob) => ({ ...blob, ...unseen, ...empty, path: keptPath(blob.digest, callerId) }))
  await transaction.run(sql`update ${name('past_files')} set ended_at = ${endedAt}
    where change_id = 0 and path ${among(rows.map(({ path }) => path))}`)
  await addPast(group, rows, { areNew: true })
  if (missing.size > 0) throw contentMissing()
  if (!isLimited) return
  // Drops older past to make room, but neither current files nor other kept blobs.
  const excess = counts.storedSize + counts.pastSize - quota
  if ((await dropOldest(group, excess, { keepsContents: true })) > 0) throw quotaExceeded(quota)
}

const allColumns = columnNames(pastColumns)
const pastRecords = recordsOf(pastColumns)

/** The row path of a blob that is kept for a caller. Its change is 0, so no past state shows it. */
export const keptPath = (digest: string, callerId: string) => `${digest}/${callerId}`

/** Adds rows with their references; those that are there stay. `areNew`: their bytes may be missing. */
export async function addPast(group: Group, rows: RowOf<typeof pastColumns>[], { areNew = false } = {}): Promise<void> {
  const table = await loadFiles(group, [], { digests: rows.map(({ digest }) => digest), areNew })
  const added = await group.transaction.all<BlobRef>(
    sql`insert into ${name('past_files')} (${allColumns}) select ${allColumns} from ${pastRecords(rows)}
      where true on conflict do nothing returning digest, size`,
  )
  for (const blob of added) table.refer(blob, { past: 1 })
  table.accept(undefined)
}

/**
 * Removes files with all their past, also of paths that were deleted before: entries of changes keep the names alone.
 * `freed`: all contents that only they had, also those that were pruned before, for `BlobStore.erase`.
 * @throws {HttpError} `file_not_found` where a path never had a file.
 */
export async function forget(
  group: Group,
  { paths, actor }: { paths: string[]; actor: Actor },
): Promise<Removed & { freed: string[] }> {
  const { transaction } = group
  group.keeps = 'nothing'
  const recorded = await readRecorded(transaction, paths)
  const past = await readPast(transaction, sql`path ${among(paths)}`)
  const digests = [...past, ...recorded].flatMap(({ digest }) => digest ?? [])
  const table = await loadFiles(group, paths, { digests })
  const current = paths.flatMap((path) => table.files.get(path) ?? [])
  const known = new Set([...current, ...past, ...recorded].map(({ path }) => path))
  const unknown = paths.find((path) => !known.has(path))
  if (unknown !== undefined) throw fileNotFound(unknown)
  const before = new Map(
    [...digests, ...current.map(({ digest }) => digest)].map((each) => [each, table.blobs.get(each)]),
  )
  exchange(table, current)
  const change = table.accept({ ...actor, action: 'delete' }, paths)
  // Includes blobs that are kept for a manifest.
  const isKept = sql`change_id = 0 and digest ${among([...before.keys()])}`
  await removePast(group, await readPast(transaction, sql`path ${among(paths)} or (${isKept})`))
  await writeChanges(group)
  await eraseStates(transaction, paths)
  const freed = [...before].filter(([digest]) => !table.blobs.get(digest))
  const bytesFreed = freed.reduce((sum, [, blob]) => sum + (blob?.size ?? 0), 0)
  return { files: current.length, bytes: change?.bytes ?? 0, bytesFreed, freed: freed.map(([digest]) => digest) }
}

async function readRecorded(transaction: SqlTransaction, paths: string[]) {
  const files = await readRecordedFiles(transaction, sql`path ${among(paths)}`)
  return files.flatMap(({ path, before, after }) => [before, after].map((state) => ({ path, digest: state?.digest })))
}

async function eraseStates(transaction: SqlTransaction, paths: string[]) {
  await transaction.run(sql`update ${name('changed_files')}
    set before_change = null, before = null, after = null where path ${among(paths)}`)
  await transaction.run(sql`update ${name('changes')} set forgotten = 1
    where id in (select change_id from ${name('changed_files')} where path ${among(paths)})`)
}
