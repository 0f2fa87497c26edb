import { name, sql } from '@domains-and-files/persistence'
import { addPast, keptPath } from '../history/past-rows.ts'
import { among } from '../records.ts'
import { type KeepCommand, type Outcome, Rejected } from './commands.ts'
import type { Group } from './load-files.ts'
import { dropOldest } from './prune-past.ts'

const dayMs = 86_400_000

/**
 * Each is a row of the past that no change shows, see `keptPath`: so quota, pruning, checks and backups know it.
 * Its end is set so that it is pruned after a day.
 */
export async function keepContents(
  group: Group,
  { contents, callerId, keepDays, isLimited }: KeepCommand,
): Promise<Outcome> {
  const { transaction, nowMs, missing } = group
  const lost = contents.find(({ digest }) => missing.has(digest))
  if (lost) return { refused: 'content_missing', path: lost.digest }
  const paths = contents.map(({ digest }) => keptPath(digest, callerId))
  const ended_at = new Date(nowMs + (1 - keepDays) * dayMs).toISOString()
  await transaction.run(sql`update ${name('past_files')} set ended_at = ${ended_at}
    where change_id = 0 and path ${among(paths)}`)
  const unseen = { change_id: 0, ended_by: 0, ended_at }
  const empty = { content_type: '', category: '', uploaded_by: '', created_at: '', updated_at: '' }
  const rows = contents.map(({ digest, size }) => ({
    ...{ path: keptPath(digest, callerId), digest, size },
    ...unseen,
    ...empty,
  }))
  await addPast(group, rows)
  if (isLimited) await fitQuota(group)
  return { done: 'keep', changed: [], freed: [] }
}

// Older past makes room; current files and other kept contents do not.
async function fitQuota(group: Group) {
  const { transaction, quota } = group
  if (quota === undefined) return
  const total = await transaction.get<{ bytes: number }>(
    sql`select stored_size + past_size bytes from ${name('catalog')}`,
  )
  const excess = (total?.bytes ?? 0) - quota
  if ((await dropOldest(group, excess, { keepsContents: true })) > 0)
    throw new Rejected('quota_exceeded', '')
}
