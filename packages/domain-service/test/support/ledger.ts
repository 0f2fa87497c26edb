import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Row, Zone } from '../../src/dns/record.ts'
import { openDatabase } from '../../src/ledger/database.ts'
import type { ChangeRequest, Ledger } from '../../src/ledger/ledger.ts'
import { SqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts'

export const domain = 'example.com'

/** A ledger in a folder of its own, which the end of the test removes. */
export function openLedger(now?: () => number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'ledger-'))
  const database = openDatabase(dataDir)
  onTestFinished(() => {
    database.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return { ledger: new SqliteLedger(database, now), database, dataDir }
}

export const row = (name: string, address = '192.0.2.1', type = 'A'): Row => ({
  name,
  type,
  address,
  mxPref: '10',
  ttl: '1800',
  dynamic: false,
})

export const zoneOf = (...rows: Row[]): Zone => ({
  domain,
  usesRegistrarDns: true,
  emailType: 'NONE',
  rows,
})

export const requestBy = (by: string, options: Partial<ChangeRequest> = {}): ChangeRequest => ({
  domain,
  by,
  requestId: 'request',
  edit: { kind: 'ensure', present: [], absent: [] },
  force: false,
  ...options,
})

/** One change, sent and confirmed. */
export async function confirm(
  ledger: Ledger,
  before: Zone,
  after: Zone,
  request = requestBy('admin'),
) {
  const send = await ledger.startSend({
    domain: request.domain,
    base: before,
    zone: after,
    intents: [{ id: undefined, request, before, after, warnings: [] }],
    repairs: [],
  })
  const [id = 0] = send.changeIds
  const change = { id, status: 'confirmed' as const, warnings: [], verified: true }
  await ledger.endSend(send.id, {
    state: 'settled',
    found: after,
    unanswered: 0,
    changes: [change],
  })
  return id
}
