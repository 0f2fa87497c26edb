import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteSql } from '@domains-and-files/persistence'
import { onTestFinished } from 'vitest'
import type { Row } from '../../src/dns/record.ts'
import type { Zone } from '../../src/dns/zone.ts'
import { type ChangeRequest, effectOf, Ledger } from '../../src/ledger/ledger.ts'
import { databaseName, migrations } from '../../src/ledger/schema.ts'

export const domain = 'example.com'

/** The embedded database in a folder of its own, which the end of the test removes. */
export function openEmbedded(now: () => number = Date.now) {
  const dataDir = mkdtempSync(join(tmpdir(), 'ledger-'))
  const database = new SqliteSql({
    file: join(dataDir, databaseName),
    migrations,
    now,
  })
  onTestFinished(async () => {
    await database.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return database
}

/** A ledger in a database of its own. */
export function openLedger(now?: () => number) {
  const database = openEmbedded(now)
  return { ledger: new Ledger({ sql: database }), database }
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
export async function confirm(ledger: Ledger, before: Zone, after: Zone, request = requestBy('admin')) {
  const send = await ledger.startSend({
    base: before,
    zone: after,
    intents: [{ write: { id: 0, isAsync: false, request }, ...effectOf(before, after) }],
    repairs: [],
  })
  const [id = 0] = send.changeIds
  const change = { id, status: 'confirmed' as const, warnings: [], verified: true }
  await ledger.endSend(send, {
    state: 'settled',
    found: after,
    unanswered: 0,
    changes: [change],
  })
  return id
}

/** Records the intent of a send that carries these changes. */
export const begin = (ledger: Ledger, ids: number[], request = requestBy('admin')) =>
  ledger.startSend({
    base: zoneOf(row('a')),
    zone: zoneOf(row('b')),
    intents: ids.map((id) => ({
      write: { id, isAsync: true, request },
      ...effectOf(zoneOf(row('a')), zoneOf(row('b'))),
    })),
    repairs: [],
  })

/** Accepts an asynchronous change. */
export async function enqueue(ledger: Ledger, request: ChangeRequest): Promise<number> {
  return (await ledger.accept(request)).id
}
