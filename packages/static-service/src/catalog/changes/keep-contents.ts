import { name, sql } from '@domains-and-files/persistence'
import { addPast } from '../history/past-rows.ts'
import { among } from '../records.ts'
import type { KeepCommand, Outcome } from './commands.ts'
import type { Group } from './load-files.ts'

const dayMs = 86_400_000

/**
 * Each is a row of the past that no change shows, with its digest as its path: so quota, pruning, checks and backups know it.
 * Its end is set so that it is pruned after a day.
 */
export async function keepContents(
  group: Group,
  { contents, keepDays }: KeepCommand,
): Promise<Outcome> {
  const { transaction, nowMs, missing } = group
  const lost = contents.find(({ digest }) => missing.has(digest))
  if (lost) return { refused: 'content_missing', path: lost.digest }
  const digests = contents.map(({ digest }) => digest)
  const ended_at = new Date(nowMs + (1 - keepDays) * dayMs).toISOString()
  const kept = await transaction.all<{ path: string }>(
    sql`update ${name('past_files')} set ended_at = ${ended_at}
      where change_id = 0 and path ${among(digests)} returning path`,
  )
  const unseen = { change_id: 0, ended_by: 0, ended_at }
  const empty = { content_type: '', category: '', uploaded_by: '', created_at: '', updated_at: '' }
  const rows = contents.map(({ digest, size }) => ({
    ...{ path: digest, digest, size },
    ...unseen,
    ...empty,
  }))
  const known = await addPast(group, rows)
  return { done: 'keep', known: [...known, ...kept.map(({ path }) => path)] }
}
