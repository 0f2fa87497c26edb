import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteSql, sql } from '@domains-and-files/persistence'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { Ledger } from '../../src/ledger/ledger.ts'
import { databaseName, migrations } from '../../src/ledger/schema.ts'
import { examine, type SentZone } from '../support/campaign-examination.ts'
import { CampaignRegistrar } from '../support/campaign-registrar.ts'
import { CampaignWriter } from '../support/campaign-writer.ts'
import { killPoints } from '../support/kill-at.ts'
import { ServiceProcess } from '../support/service-process.ts'
import { apiKey } from '../support/start.ts'

// FAULT_WRITES=5000 makes the campaign long (npm run faults). The rate keeps the proportions of the real one: a batch of
// three calls takes a seventh of a window.
const writes = Number(process.env.FAULT_WRITES ?? 120)
const rate = process.env.FAULT_RATE ?? '1200/minute'
const domains = ['plain.com', 'tool.com', 'late.com']

test(`${writes} writes with crashes, lost answers, late writes and other tools lose nothing`, async () => {
  await using sandbox = await startSandbox({
    apiUser: 'tester',
    apiKey,
    rate,
    domains: domains.map((name) => ({
      name,
      hosts: [{ name: 'www', type: 'A', address: '192.0.2.1' }],
    })),
  })
  const dataDir = mkdtempSync(join(tmpdir(), 'campaign-'))
  const service = await ServiceProcess.create({
    DATA_DIR: dataDir,
    REGISTRAR_URL: sandbox.url,
    REGISTRAR_RATE: rate,
    REGISTRAR_TIMEOUT_MS: '1000',
  })
  const registrar = new CampaignRegistrar(sandbox)
  const writers = domains.flatMap((domain) =>
    Array.from({ length: 4 }, (_, n) => new CampaignWriter(service, domain, `${domain.slice(0, 2)}${n}`)),
  )
  try {
    await service.start()
    const started = performance.now()
    let left = writes
    const isOver = () => left <= 0
    const running = writers.map(async (writer) => {
      while (left > 0) if (await writer.write()) left--
    })
    const troubles = [registrar.trouble(isOver), crash(service, isOver), readOthers(service, isOver)]
    await Promise.all([...running, ...troubles])
    await registrar.calm()
    await service.stop()
    await service.start()
    // Each of these resolves what is open and repairs a late write before it.
    for (const domain of domains) await expect.poll(() => writeLast(service, domain)).toBe('200')
    await expect.poll(() => countOpen(service), { interval: 1_000 }).toBe(0)
    await service.stop()

    const ended = performance.now()
    const database = new SqliteSql({ file: join(dataDir, databaseName), migrations })
    const sends = await database.all<SentZone>(
      sql`select sends.domain, snapshot, started_at as "startedAt" from sends
        join zones on zones.digest = sends.zone order by sends.id`,
    )
    const ledger = new Ledger({ sql: database })
    const report = await examine({ ledger, sends }, { writers, registrar, sandbox })
    await database.close()
    process.stdout.write(
      `${JSON.stringify({ writes, seconds: Math.round((ended - started) / 1000), kills: service.kills, calls: registrar.callCount, ...report.figures })}\n`,
    )
    expect(report.violations).toEqual([])
  } finally {
    await registrar.calm()
    await service.stop('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 3_600_000)

// Changes a record that is there: the zone may be full.
const writeLast = async (service: ServiceProcess, domain: string) => {
  const body = { ttl: 60 + Math.floor(Math.random() * 1_000), values: ['192.0.2.1'] }
  const { status, code } = await service.call('PUT', `/api/domains/${domain}/dns/rrsets/www/A`, body)
  return `${status} ${code ?? ''}`.trim()
}

/** Kills the service at the points of a write in turn, and starts it again. */
async function crash(service: ServiceProcess, isOver: () => boolean) {
  for (let n = 0; !isOver(); n++) {
    const point = killPoints[n % killPoints.length]
    await service.stop('SIGKILL')
    await service.start(`${point}:${8 + ((n * 7) % 40)}`)
    const until = performance.now() + 8_000
    while (service.isRunning && performance.now() < until && !isOver()) await pause(50)
  }
  if (!service.isRunning) await service.start()
}

// What the other tool's zone was shown for, tells what a write of it was based on.
async function readOthers(service: ServiceProcess, isOver: () => boolean) {
  const others = domains.filter((domain) => domain !== 'tool.com')
  while (!isOver()) {
    for (const domain of others) await service.call('GET', `/api/domains/${domain}/dns/hosts`)
    await pause(200)
  }
}

async function countOpen(service: ServiceProcess): Promise<number> {
  const counts = await Promise.all(
    ['queued', 'sending'].map(async (status) => {
      const { body } = await service.call('GET', `/api/changes?page_size=1&status=${status}`)
      // The test reads what this service answers.
      return (body as { pagination?: { total_items: number } }).pagination?.total_items ?? 1
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
