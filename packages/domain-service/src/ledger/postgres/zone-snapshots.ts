import type { Transaction } from '@domains-and-files/persistence'
import type { Snapshot } from '../ledger.ts'
import { compress, decodeSnapshot, digestOf, encodeSnapshot } from '../snapshot-encoding.ts'

/** A zone that nothing refers to is deleted only after this time, in which every transaction that puts it has ended. */
export const unusedMs = 3_600_000

/**
 * Stores each distinct zone once, compressed, by the SHA-256 of its text.
 * @returns the digest of each snapshot.
 */
export async function putZones(
  transaction: Transaction,
  snapshots: Iterable<Snapshot>,
): Promise<Map<Snapshot, string>> {
  const digests = new Map<Snapshot, string>()
  const texts = new Map<string, string>()
  for (const snapshot of snapshots) {
    const text = encodeSnapshot(snapshot)
    const digest = digestOf(text)
    digests.set(snapshot, digest)
    texts.set(digest, text)
  }
  const known = await transaction.query<{ digest: string }>(
    'select digest from domain_service.zones where digest = any($1) and used_at > domain_service.now_ms() - $2',
    [[...texts.keys()], unusedMs / 2],
  )
  for (const { digest } of known) texts.delete(digest)
  // In order, so that transactions that put the same zones do not wait for each other in a circle.
  const missing = [...texts].sort(([a], [b]) => (a < b ? -1 : 1))
  if (missing.length > 0)
    await transaction.query(
      `insert into domain_service.zones (digest, snapshot) select * from unnest($1::text[], $2::bytea[])
       on conflict (digest) do update set used_at = excluded.used_at`,
      [missing.map(([digest]) => digest), missing.map(([, text]) => compress(text))],
    )
  return digests
}

/** The snapshots of these digests; null and undefined are skipped. */
export async function getZones(
  database: Pick<Transaction, 'query'>,
  wanted: (string | null | undefined)[],
): Promise<(digest: string) => Snapshot> {
  const digests = [...new Set(wanted.filter((digest) => typeof digest === 'string'))]
  const rows =
    digests.length === 0
      ? []
      : await database.query<{ digest: string; snapshot: Buffer }>(
          'select digest, snapshot from domain_service.zones where digest = any($1)',
          [digests],
        )
  const packed = new Map(rows.map(({ digest, snapshot }) => [digest, snapshot]))
  return (digest) => {
    const found = packed.get(digest)
    if (!found) throw new Error(`zone snapshot ${digest} is missing`)
    return decodeSnapshot(found)
  }
}
