import { name, sql } from '@domains-and-files/persistence'
import type { Group } from '../changes/load-files.ts'
import { among, recordsOf, stateTypes } from '../records.ts'

export const pastTypes = {
  ...stateTypes,
  ended_by: 'bigint',
  ended_at: 'text',
} as const

const pastRecords = recordsOf(pastTypes)
const blobRecords = recordsOf({ digest: 'text', size: 'bigint', past: 'bigint' })

/** A row of `past_files`. */
export type PastRecord = Record<keyof typeof pastTypes, string | number> & {
  digest: string
  size: number
}

/** The path of the row of a content that is kept for a caller: its change is 0, and no moment shows it. */
export const keptPath = (digest: string, callerId: string) => `${digest}/${callerId}`

/** Adds rows with their references. */
export async function addPast(
  { transaction, references }: Pick<Group, 'transaction' | 'references'>,
  rows: PastRecord[],
): Promise<void> {
  const columns = sql([Object.keys(pastTypes).join(', ')])
  const added = await transaction.all<{
    digest: string
    size: number
  }>(sql`insert into ${name('past_files')} (${columns})
    select ${columns} from ${pastRecords(rows)} where true on conflict do nothing returning digest, size`)
  const counts = new Map<string, { digest: string; size: number; past: number }>()
  for (const { digest, size } of added) {
    counts.set(digest, { digest, size, past: (counts.get(digest)?.past ?? 0) + 1 })
  }
  const known = await transaction.all<{ digest: string }>(
    sql`select digest from ${name('blobs')} where digest ${among([...counts.keys()])}`,
  )
  const before = new Set(known.map(({ digest }) => digest))
  await transaction.run(sql`insert into ${name('blobs')} as blob (digest, size, refs, past)
    select digest, size, 0, past from ${blobRecords([...counts.values()])} where true
    on conflict (digest) do update set past = blob.past + excluded.past`)
  const fresh = [...counts.values()].filter(({ digest }) => !before.has(digest))
  const bytes = fresh.reduce((sum, { size }) => sum + size, 0)
  await transaction.run(sql`update ${name('catalog')} set past_size = past_size + ${bytes}`)
  for (const { digest } of fresh) references.set(digest, { before: false, after: true })
}
