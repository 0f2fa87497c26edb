import { expect, it } from 'vitest'
import { effectOf, Ledger } from '../../src/ledger/ledger.ts'
import { openEmbedded, requestBy, row } from '../support/ledger.ts'

it('what a write and the queue read does not grow with the history', async () => {
  const sql = openEmbedded()
  const plans = new Set<string>()
  const prepare = sql.database.prepare.bind(sql.database)
  sql.database.prepare = (text: string) => {
    if (!/^\s*(?:select|update|delete|with)/.test(text)) return prepare(text)
    const values = Array.from(text.matchAll(/\?/g), () => null)
    for (const step of prepare(`explain query plan ${text}`).all(values)) plans.add(String(Object(step).detail))
    return prepare(text)
  }
  const ledger = new Ledger({ sql })
  const base = { domain: 'example.com', usesRegistrarDns: true, emailType: 'NONE', rows: [] }
  const zone = { ...base, rows: [row('a')] }
  const request = requestBy('admin')
  const intent = { write: { id: 0, isAsync: false, request }, ...effectOf(base, zone) }

  const send = { base, zone, intents: [intent], repairs: [] }
  const started = await ledger.startSend(send)
  await ledger.endSend(started, { state: 'settled', unanswered: 0, found: zone, changes: [] })
  await ledger.sendsOf(base.domain)
  await ledger.ready(base.domain)
  await ledger.hasOpenSend(base.domain)
  await ledger.hasPending(base.domain)
  await ledger.queuedDomains()
  await ledger.countQueued()
  await ledger.unsettledDomains()
  await ledger.recover()
  await ledger.knownZones.compare(base, { ageMs: 0, isIgnored: () => false })

  // `next` is read for sends without an outcome only.
  const growing =
    /SCAN (?:changes|sends)$|SEARCH (?!next).*(?:changes_of_domain|sent_changes|sends_by_end \(domain=\?\)$)/
  expect([...plans].filter((plan) => growing.test(plan))).toEqual([])
  expect([...plans].join()).toContain('sends_by_end (domain=? AND ended_at>?)')
})
