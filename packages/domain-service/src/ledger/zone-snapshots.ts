import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import { slices } from '@domains-and-files/http'
import { join, list, name, now, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import type { Row } from '../dns/record.ts'
import type { Zone } from '../dns/zone.ts'

/** A zone that nothing refers to is deleted only after this time, in which every transaction that puts it has ended. */
export const unusedMs = 3_600_000

const zones = name('zones')

/** Stores each distinct zone once, compressed, by its digest. */
export async function putZones(transaction: SqlTransaction, added: Iterable<Zone>): Promise<void> {
  const wanted = new Map<string, Zone>()
  const nextSlice = slices()
  for (const zone of added) {
    await nextSlice()
    wanted.set(zoneDigest(zone), zone)
  }
  if (wanted.size === 0) return
  const known = await transaction.all<{ digest: string }>(sql`
    select digest from ${zones} where digest in (${list([...wanted.keys()])})
      and used_at > ${now} - ${unusedMs / 2}`)
  for (const { digest } of known) wanted.delete(digest)
  // Sorted, so that transactions that put the same zones cannot deadlock.
  const missing = [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))
  if (missing.length === 0) return
  const rows: Statement[] = []
  for (const [digest, zone] of missing) rows.push(sql`(${digest}, ${await compress(encodeZone(zone))}, ${now})`)
  await transaction.run(sql`insert into ${zones} (digest, snapshot, used_at) values ${join(rows)}
    on conflict (digest) do update set used_at = excluded.used_at`)
}

/** The digest under which `putZones` stores a zone: the SHA-256 of its text. */
export const zoneDigest = (zone: Zone): string =>
  digests.getOrInsertComputed(zone, () => hash('sha256', encodeZone(zone), 'base64url'))

// A zone is immutable.
const digests = new WeakMap<Zone, string>()

/** The zones of a domain with these digests, each decoded when it is asked for; null and undefined are skipped. */
export async function getZones(
  database: SqlTransaction,
  domain: string,
  wanted: (string | null | undefined)[],
): Promise<(digest: string) => Zone> {
  const digests = [...new Set(wanted.filter((digest) => typeof digest === 'string'))]
  const read = sql`select digest, snapshot from ${zones} where digest in (${list(digests)})`
  const rows = digests.length === 0 ? [] : await database.all<{ digest: string; snapshot: Buffer }>(read)
  const packed = new Map(rows.map(({ digest, snapshot }) => [digest, snapshot]))
  const decoded = new Map<string, Zone>()
  return (digest) => {
    const bytes = packed.get(digest)
    if (!bytes) throw new Error(`zone snapshot ${digest} is missing`)
    return decoded.getOrInsertComputed(digest, () => decodeZone(bytes, domain))
  }
}

/** Level 1: intents are written while a client waits, and TXT values hardly compress. Long texts: on another thread. */
export const compress = async (text: string): Promise<Buffer> =>
  text.length < 16_384 ? deflateRawSync(text, { level: 1 }) : deflateRawAside(text, { level: 1 })
const deflateRawAside = promisify<string, { level: number }, Buffer>(deflateRaw)

// Rows are sorted, since the registrar gives them in any order: equal zones give equal texts.
function encodeZone({ emailType, rows }: Zone): string {
  const sorted = rows
    // Explicit, so that a further field of Row or another order of its keys does not change digests.
    .map(({ name, type, address, mxPref, ttl, dynamic }) =>
      JSON.stringify({ name, type, address, mxPref, ttl, dynamic }),
    )
    .sort()
    .join(',')
  return `{"emailType":${JSON.stringify(emailType ?? null)},"rows":[${sorted}]}`
}

/** Rows as the registrar gave them, so that a restore sends the same bytes. */
export function decodeZone(packed: Buffer, domain: string): Zone {
  // Only `encodeZone` writes this text.
  const { emailType, rows } = JSON.parse(String(inflateRawSync(packed))) as {
    emailType: string | null
    rows: Row[]
  }
  return { domain, usesRegistrarDns: true, emailType: emailType ?? undefined, rows }
}
