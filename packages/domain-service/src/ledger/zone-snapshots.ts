import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import {
  join,
  list,
  name,
  now,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { slices } from '../clock.ts'
import type { Row } from '../dns/record.ts'
import type { Snapshot } from './change.ts'

/** A zone that nothing refers to is deleted only after this time, in which every transaction that puts it has ended. */
export const unusedMs = 3_600_000

const zones = name('zones')

/** Stores each distinct zone once, compressed, by its digest. */
export async function putZones(
  transaction: SqlTransaction,
  snapshots: Iterable<Snapshot>,
): Promise<void> {
  const wanted = new Map<string, Snapshot>()
  const nextSlice = slices()
  for (const snapshot of snapshots) {
    await nextSlice()
    wanted.set(zoneDigest(snapshot), snapshot)
  }
  const known = await transaction.all<{ digest: string }>(
    sql`select digest from ${zones} where digest in (${list([...wanted.keys()])})
      and used_at > ${now} - ${unusedMs / 2}`,
  )
  for (const { digest } of known) wanted.delete(digest)
  // Sorted, so that transactions that put the same zones cannot deadlock.
  const missing = [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))
  if (missing.length > 0) {
    // On another thread: a batch may have hundreds of zones of 400 KB.
    const rows: Statement[] = []
    for (const [digest, snapshot] of missing)
      rows.push(sql`(${digest}, ${await compressAside(encodeSnapshot(snapshot))}, ${now})`)
    await transaction.run(
      sql`insert into ${zones} (digest, snapshot, used_at) values ${join(rows)}
        on conflict (digest) do update set used_at = excluded.used_at`,
    )
  }
}

/** The digest under which `putZones` stores a zone: the SHA-256 of its text. */
export function zoneDigest(snapshot: Snapshot): string {
  const known = digests.get(snapshot)
  if (known) return known
  const digest = hash('sha256', encodeSnapshot(snapshot), 'base64url')
  digests.set(snapshot, digest)
  return digest
}

// A zone is immutable.
const digests = new WeakMap<Snapshot, string>()

/** The snapshots of these digests, each decoded when it is asked for; null and undefined are skipped. */
export async function getZones(
  database: SqlTransaction,
  wanted: (string | null | undefined)[],
): Promise<(digest: string) => Snapshot> {
  const digests = [...new Set(wanted.filter((digest) => typeof digest === 'string'))]
  const rows =
    digests.length === 0
      ? []
      : await database.all<{ digest: string; snapshot: Buffer }>(
          sql`select digest, snapshot from ${zones} where digest in (${list(digests)})`,
        )
  const packed = new Map(rows.map(({ digest, snapshot }) => [digest, snapshot]))
  const decoded = new Map<string, Snapshot>()
  return (digest) => {
    const bytes = packed.get(digest)
    if (!bytes) throw new Error(`zone snapshot ${digest} is missing`)
    const snapshot = decoded.get(digest) ?? decodeSnapshot(bytes)
    decoded.set(digest, snapshot)
    return snapshot
  }
}

/** Level 1: intents are written while a client waits, and TXT values hardly compress. */
export const compress = (text: string): Buffer => deflateRawSync(text, { level: 1 })
const compressAside = async (text: string): Promise<Buffer> =>
  text.length < 16_384 ? compress(text) : deflateRawAside(text, { level: 1 })
const deflateRawAside = promisify<string, { level: number }, Buffer>(deflateRaw)
export const decompress = (packed: Buffer): string => String(inflateRawSync(packed))

// Rows are sorted, since the registrar gives them in any order: equal zones give equal texts.
function encodeSnapshot({ emailType, rows }: Snapshot): string {
  const sorted = rows
    .map((row) => JSON.stringify(orderedRow(row)))
    .sort()
    .join(',')
  return `{"emailType":${JSON.stringify(emailType ?? null)},"rows":[${sorted}]}`
}

export function decodeSnapshot(packed: Buffer): Snapshot {
  // Only `encodeSnapshot` writes this text.
  const { emailType, rows } = JSON.parse(decompress(packed)) as {
    emailType: string | null
    rows: Row[]
  }
  return { emailType: emailType ?? undefined, rows }
}

// Explicit, so that a further field of Row or another order of its keys does not change digests.
const orderedRow = ({ name, type, address, mxPref, ttl, dynamic }: Row) => ({
  name,
  type,
  address,
  mxPref,
  ttl,
  dynamic,
})
