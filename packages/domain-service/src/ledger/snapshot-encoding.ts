import { hash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Row } from '../dns/record.ts'
import type { Snapshot } from './ledger.ts'

/** The text of a snapshot. Rows are sorted, since the registrar gives them in any order: equal zones give equal texts. */
export function encodeSnapshot({ emailType, rows }: Snapshot): string {
  const sorted = rows
    .map((row) => JSON.stringify(orderedRow(row)))
    .sort()
    .join(',')
  return `{"emailType":${JSON.stringify(emailType ?? null)},"rows":[${sorted}]}`
}

export const digestOf = (text: string) => hash('sha256', text, 'base64url')

/** Level 1: intents are written while a client waits, and TXT values hardly compress. */
export const compress = (text: string): Buffer => deflateRawSync(text, { level: 1 })

export function decodeSnapshot(packed: Buffer): Snapshot {
  // Only `encodeSnapshot` writes this text.
  const { emailType, rows } = JSON.parse(String(inflateRawSync(packed))) as {
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
