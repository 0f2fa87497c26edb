import { name, sql } from '@domains-and-files/persistence'
import type { Group } from '../changes/group.ts'
import { among, columnNames, type RowOf, recordsOf } from '../records.ts'
import { pastColumns } from '../tables.ts'

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
