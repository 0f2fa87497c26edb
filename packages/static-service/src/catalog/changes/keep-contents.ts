import { name, sql } from '@domains-and-files/persistence'
import type { StoredBlob } from '../../blobs/staged-blob.ts'
import { contentMissing, quotaExceeded } from '../../errors.ts'
import { among, columnNames, type RowOf, recordsOf } from '../records.ts'
import { type BlobReferences, pastColumns } from '../tables.ts'
import type { Group } from './group.ts'
import { dropOldest } from './prune-past.ts'
import { findMissing } from './stored-rows.ts'

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
  const { transaction, nowMs, rules } = group
  const digests = contents.map(({ digest }) => digest)
  if ((await findMissing(group, digests)).size > 0) throw contentMissing()
  const paths = digests.map((digest) => keptPath(digest, callerId))
  const endedAt = new Date(nowMs + (1 - rules.keepDays) * dayMs).toISOString()
  await transaction.run(sql`update ${name('past_files')} set ended_at = ${endedAt}
    where change_id = 0 and path ${among(paths)}`)
  const unseen = { changeId: 0, endedBy: 0, endedAt }
  const empty = { contentType: '', category: '', uploadedBy: '', createdAt: '', updatedAt: '' }
  const rows = contents.map((content) => ({
    ...{ ...content, ...unseen, ...empty, path: keptPath(content.digest, callerId) },
  }))
  await addPast(group, rows)
  if (isLimited) await fitQuota(group)
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

const columns = columnNames(pastColumns)
const pastRecords = recordsOf(pastColumns)
const blobRecords = recordsOf({ digest: 'text', size: 'bigint', past: 'bigint' })

/** The row path of a blob that is kept for a caller. Its change is 0, so no past state shows it. */
export const keptPath = (digest: string, callerId: string) => `${digest}/${callerId}`

/** Adds rows with their references. */
export async function addPast(
  { transaction, references }: Pick<Group, 'transaction' | 'references'>,
  rows: RowOf<typeof pastColumns>[],
): Promise<void> {
  const added = await transaction.all<{ digest: string; size: number }>(
    sql`insert into ${name('past_files')} (${columns}) select ${columns} from ${pastRecords(rows)}
      where true on conflict do nothing returning digest, size`,
  )
  const counts = new Map<string, { digest: string; size: number; past: number }>()
  for (const { digest, size } of added) {
    counts.set(digest, { digest, size, past: (counts.get(digest)?.past ?? 0) + 1 })
  }
  const blobs = await transaction.all<BlobReferences>(
    sql`insert into ${name('blobs')} as blob (digest, size, refs, past)
      select digest, size, 0, past from ${blobRecords([...counts.values()])} where true
      on conflict (digest) do update set past = blob.past + excluded.past
      returning digest, size, refs, past`,
  )
  const fresh = blobs.filter(
    ({ digest, refs, past }) => refs === 0 && past === counts.get(digest)?.past,
  )
  const bytes = fresh.reduce((sum, { size }) => sum + size, 0)
  await transaction.run(sql`update ${name('catalog')} set past_size = past_size + ${bytes}`)
  for (const { digest } of fresh) references.set(digest, { before: false, after: true })
}
