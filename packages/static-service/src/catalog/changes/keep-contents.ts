import { name, sql } from '@domains-and-files/persistence'
import { among, records } from '../records.ts'
import type { KeepCommand, Outcome } from './commands.ts'
import type { Group } from './load-files.ts'

const dayMs = 86_400_000

/**
 * Each is a row of the past that no change shows, with its digest as its path: so quota, pruning, checks and backups know it.
 * Its end is set so that it is pruned after a day.
 */
export async function keepContents(
  { transaction, nowMs, missing, references }: Group,
  { contents, keepDays }: KeepCommand,
): Promise<Outcome> {
  const lost = contents.find(({ digest }) => missing.has(digest))
  if (lost) return { refused: 'content_missing', path: lost.digest }
  const digests = contents.map(({ digest }) => digest)
  const endedAt = new Date(nowMs + (1 - keepDays) * dayMs).toISOString()
  const kept = await transaction.all<{ path: string }>(
    sql`update ${name('past_files')} set ended_at = ${endedAt}
      where change_id = 0 and path ${among(digests)} returning path`,
  )
  const keptBefore = new Set(kept.map(({ path }) => path))
  const added = [...new Map(contents.map((each) => [each.digest, each])).values()].filter(
    ({ digest }) => !keptBefore.has(digest),
  )
  const known = await transaction.all<{ digest: string }>(
    sql`select digest from ${name('blobs')} where digest ${among(digests)}`,
  )
  const knownBefore = new Set(known.map(({ digest }) => digest))
  const fresh = added.filter(({ digest }) => !knownBefore.has(digest))
  const rows = records(added, { digest: 'text', size: 'bigint' })
  await transaction.run(sql`insert into ${name('past_files')} (path, change_id, ended_by, ended_at, digest, size,
      content_type, category, uploaded_by, created_at, updated_at)
    select digest, 0, 0, ${endedAt}, digest, size, '', '', '', '', '' from ${rows}`)
  await transaction.run(sql`insert into ${name('blobs')} as blob (digest, size, refs, past)
    select digest, size, 0, 1 from ${rows} where true
    on conflict (digest) do update set past = blob.past + 1`)
  const bytes = fresh.reduce((sum, { size }) => sum + size, 0)
  await transaction.run(sql`update ${name('catalog')} set past_size = past_size + ${bytes}`)
  for (const { digest } of fresh) references.set(digest, { before: false, after: true })
  return { done: 'keep', known: [...knownBefore] }
}
