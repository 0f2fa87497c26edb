import { name, sql } from '@domains-and-files/persistence'
import { contentMissing, quotaExceeded } from '../../errors.ts'
import { addPast, keptPath } from '../history/past-rows.ts'
import { among } from '../records.ts'
import type { Done, Group, KeepCommand } from './commands.ts'
import { dropOldest, type HistoryRules } from './prune-past.ts'

const dayMs = 86_400_000

/**
 * Keeps each blob by a past row that no change shows (see `keptPath`), so that quota, pruning, checks and backups cover
 * it. The end date of the row makes pruning remove it after a day.
 */
export async function keepContents(
  group: Group,
  { contents, callerId, isLimited }: KeepCommand,
  { keepDays }: HistoryRules,
): Promise<Done<undefined>> {
  const { transaction, nowMs, missing } = group
  if (contents.some(({ digest }) => missing.has(digest))) throw contentMissing()
  const paths = contents.map(({ digest }) => keptPath(digest, callerId))
  const endedAt = new Date(nowMs + (1 - keepDays) * dayMs).toISOString()
  await transaction.run(sql`update ${name('past_files')} set ended_at = ${endedAt}
    where change_id = 0 and path ${among(paths)}`)
  const unseen = { changeId: 0, endedBy: 0, endedAt }
  const empty = { contentType: '', category: '', uploadedBy: '', createdAt: '', updatedAt: '' }
  const rows = contents.map((content) => ({
    ...{ ...content, ...unseen, ...empty, path: keptPath(content.digest, callerId) },
  }))
  await addPast(group, rows)
  if (isLimited) await fitQuota(group)
  return { value: undefined }
}

// Drops older past to make room, but neither current files nor other kept blobs.
async function fitQuota(group: Group) {
  const { transaction, quota } = group
  if (quota === undefined) return
  const total = await transaction.get<{ bytes: number }>(
    sql`select stored_size + past_size bytes from ${name('catalog')}`,
  )
  const excess = (total?.bytes ?? 0) - quota
  if ((await dropOldest(group, excess, { keepsContents: true })) > 0) throw quotaExceeded(quota)
}
