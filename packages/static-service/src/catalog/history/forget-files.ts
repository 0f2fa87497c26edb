import { name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { fileNotFound } from '../../errors.ts'
import type { Actor } from '../changes/change-entry.ts'
import { exchange } from '../changes/file-changes.ts'
import type { Group, Removed } from '../changes/loaded-files.ts'
import { type PastRow, pastRows, removePast } from '../changes/past-rows.ts'
import { loadFiles, writeChanges } from '../changes/stored-rows.ts'
import { among } from '../records.ts'
import { readRecordedFiles } from './change-log.ts'

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
  const forgetting: Group = { ...group, keeps: 'nothing' }
  const table = await loadFiles(forgetting, paths)
  const current = paths.flatMap((path) => table.files.get(path) ?? [])
  const recorded = await readRecorded(transaction, paths)
  const past = await readPast(transaction, sql`path ${among(paths)}`)
  const known = new Set([...current, ...past, ...recorded].map(({ path }) => path))
  const unknown = paths.find((path) => !known.has(path))
  if (unknown !== undefined) throw fileNotFound(unknown)
  const all = [...current, ...past, ...recorded].flatMap(({ digest }) => digest ?? [])
  const digests = [...new Set(all)]
  const before = await readSizes(transaction, digests)
  exchange(table, current)
  table.accept({ ...actor, action: 'delete' }, paths)
  await writeChanges(forgetting, table)
  // Includes blobs that are kept for a manifest.
  const isKept = sql`change_id = 0 and digest ${among(digests)}`
  await removePast(group, await readPast(transaction, sql`path ${among(paths)} or (${isKept})`))
  await eraseStates(transaction, paths)
  const after = await readSizes(transaction, digests)
  const freed = digests.filter((digest) => !after.has(digest))
  const bytesFreed = freed.reduce((sum, digest) => sum + (before.get(digest) ?? 0), 0)
  return { files: current.length, bytesFreed, freed }
}

const readPast = (transaction: SqlTransaction, condition: Statement) =>
  transaction.all<PastRow>(sql`${pastRows} where ${condition}`)

async function readRecorded(transaction: SqlTransaction, paths: string[]) {
  const files = await readRecordedFiles(transaction, sql`path ${among(paths)}`)
  return files.flatMap(({ path, before, after }) =>
    [before, after].map((state) => ({ path, digest: state?.digest })),
  )
}

async function readSizes(transaction: SqlTransaction, digests: string[]) {
  const rows = await transaction.all<{ digest: string; size: number }>(
    sql`select digest, size from ${name('blobs')} where digest ${among(digests)}`,
  )
  return new Map(rows.map(({ digest, size }) => [digest, size]))
}

async function eraseStates(transaction: SqlTransaction, paths: string[]) {
  await transaction.run(sql`update ${name('changed_files')}
    set before_change = null, before = null, after = null where path ${among(paths)}`)
  await transaction.run(sql`update ${name('changes')} set forgotten = 1
    where id in (select change_id from ${name('changed_files')} where path ${among(paths)})`)
}
