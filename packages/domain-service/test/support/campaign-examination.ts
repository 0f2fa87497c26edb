import type { Sandbox } from '@domains-and-files/registrar-sandbox'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { decodeZone } from '../../src/ledger/zone-snapshots.ts'
import type { CampaignRegistrar, Suspension } from './campaign-registrar.ts'
import type { CampaignWriter } from './campaign-writer.ts'

/** A zone that was sent, as the ledger stores it. */
export interface SentZone {
  domain: string
  snapshot: Buffer
  /** When its intent was recorded, in milliseconds since 1970. */
  startedAt: number
}

interface Evidence {
  writers: CampaignWriter[]
  registrar: CampaignRegistrar
  sandbox: Sandbox
  suspensions?: Suspension[]
}

/** Compares what the writers were answered with the registrar's zones and with the ledger. `sends`: oldest first. */
export async function examine(
  { ledger, sends }: { ledger: Ledger; sends: SentZone[] },
  { writers, registrar, sandbox, suspensions = [] }: Evidence,
) {
  registrar.collect()
  const removed = await findRemoved(ledger)
  const intents = sends.map(({ domain, snapshot, startedAt }) => ({
    domain,
    names: namesOfSnapshot(snapshot, domain),
    startedAt,
  }))
  const liveIn = (domain: string) => new Set(sandbox.zone(domain).hosts.map(({ name }) => name))
  const violations = [
    ...writers.flatMap((writer) => writer.violations(liveIn(writer.domain), removed)),
    ...registrar.unknownSends(intents),
    ...registrar.overtakenSends(intents, suspensions),
    ...registrar.erased(intents, suspensions),
  ]
  const figures = {
    answers: writers.reduce((sum, writer) => addCounts(sum, writer.answers), {}),
    other_tool_writes: registrar.toolWrites,
    erased_in_a_race: registrar.races,
    late_writes: registrar.lateWrites,
  }
  return { violations, figures }
}

/** Domain and name of each record that a change in the history removed. */
async function findRemoved(ledger: Ledger): Promise<Set<string>> {
  const removed = new Set<string>()
  for (let page = 1, total = 1; (page - 1) * 500 < total; page++) {
    const found = await ledger.list({ sentOnly: true }, { page, page_size: 500 })
    total = found.total
    for (const { id, domain } of found.changes) {
      const zones = await ledger.zonesOf(id)
      for (const row of zones?.removed ?? []) removed.add(`${domain} ${row.name}`)
    }
  }
  return removed
}

const addCounts = (a: Record<string, number>, b: Record<string, number>) => {
  const sum = { ...a }
  for (const [key, count] of Object.entries(b)) sum[key] = (sum[key] ?? 0) + count
  return sum
}

const namesOfSnapshot = (packed: Buffer, domain: string) =>
  decodeZone(packed, domain)
    .rows.map(({ name }) => name)
    .sort()
    .join(' ')
