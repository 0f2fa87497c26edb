import { name, sql } from '@domains-and-files/persistence'
import type { StoredBlob } from '../../blobs/integrity.ts'
import { contentMissing, quotaExceeded } from '../../errors.ts'
import { among, columnNames, type RowOf, recordsOf } from '../records.ts'
import { pastColumns } from '../tables.ts'
import type { Group } from './group.ts'
import type { LoadedFiles } from './loaded-files.ts'
import { dropOldest } from './prune-past.ts'
import { loadFiles, writeReferences } from './stored-rows.ts'

const dayMs = 86_400_000

/**
 * Keeps durable blobs without a file for a caller, for a day, until a manifest names them. Each has a past row that no
 * change shows (see `keptPath`), so that quota, pruning, checks and backups cover it. Its end date makes pruning remove
 * it after a day.
 * @throws {HttpError} `quota_exceeded` if they are limited and, with the current files, exceed the quota.
 */
export async function keepContents(
  group: Group,
  {
    contents,
    callerId,
    isLimited,
  }: { contents: StoredBlob[]; callerId: string; isLimited: boolean },
): Promise<void> {
  const { transaction, nowMs, rules, quota } = group
  const paths = contents.map(({ digest }) => keptPath(digest, callerId))
  const endedAt = new Date(nowMs + (1 - rules.keepDays) * dayMs).toISOString()
  await transaction.run(sql`update ${name('past_files')} set ended_at = ${endedAt}
    where change_id = 0 and path ${among(paths)}`)
  const unseen = { changeId: 0, endedBy: 0, endedAt }
  const empty = { contentType: '', category: '', uploadedBy: '', createdAt: '', updatedAt: '' }
  const rows = contents.map((content) => ({
    ...{ ...content, ...unseen, ...empty, path: keptPath(content.digest, callerId) },
  }))
  const { loaded, sizes } = await addPast(group, rows, { areNew: true })
  if (loaded.missing?.size) throw contentMissing()
  if (!isLimited || quota === undefined) return
  // Drops older past to make room, but neither current files nor other kept blobs.
  const excess = sizes.stored + sizes.past - quota
  if ((await dropOldest(group, excess, { keepsContents: true })) > 0) throw quotaExceeded(quota)
}

const columns = columnNames(pastColumns)
const pastRecords = recordsOf(pastColumns)

/** The row path of a blob that is kept for a caller. Its change is 0, so no past state shows it. */
export const keptPath = (digest: string, callerId: string) => `${digest}/${callerId}`

/** Adds rows with their references; those that are there stay. `areNew`: their bytes may be missing. */
export async function addPast(
  group: Group,
  rows: RowOf<typeof pastColumns>[],
  { areNew = false } = {},
): Promise<LoadedFiles> {
  const table = await loadFiles(group, [], { digests: rows.map(({ digest }) => digest), areNew })
  const added = await group.transaction.all<StoredBlob>(
    sql`insert into ${name('past_files')} (${columns}) select ${columns} from ${pastRecords(rows)}
      where true on conflict do nothing returning digest, size`,
  )
  for (const blob of added) table.refer(blob, { past: 1 })
  await writeReferences(group, table)
  return table
}
