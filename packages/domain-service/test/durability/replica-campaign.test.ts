import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Sandbox, startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { ServerProcess } from '../../../../test/support/postgres/server-process.ts'
import { examine } from '../support/campaign-examination.ts'
import { CampaignRegistrar } from '../support/campaign-registrar.ts'
import { CampaignWriter } from '../support/campaign-writer.ts'
import { connect } from '../support/databases.ts'
import { readerOf } from '../support/ledgers.ts'
import { ServiceProcess } from '../support/service-process.ts'
import { apiKey } from '../support/start.ts'

// REPLICA_WRITES=2000 makes the campaign long (npm run faults).
const writes = Number(process.env.REPLICA_WRITES ?? 40)
const rate = process.env.FAULT_RATE ?? '1200/minute'
// A dead or stalled replica keeps others from a domain for the lease's 16 seconds: with many domains most are free.
const domains = ['plain.com', 'tool.com', 'late.com', ...Array.from({ length: 9 }, (_, n) => `d${n}.com`)]
/** Longer than a lease. */
const stallMs = 18_000
const killPoints = ['write:created', 'readback:created', 'write:sent', 'read:answered']

/** A replica in a process of its own, with a proxy before its database. */
interface Replica {
  service: ServiceProcess
  proxy: PostgresProxy
}

test(`${writes} writes at three replicas with crashes, stalls, lost connections and a restarted database lose nothing`, async () => {
  await using stack = new AsyncDisposableStack()
  const sandbox = stack.use(await openSandbox())
  const server = await ServerProcess.create(mkdtempSync(join(tmpdir(), 'pg-')))
  stack.defer(() => server.stop('SIGQUIT'))
  const url = server.urlOf('postgres')
  const replicas: Replica[] = []
  for (let n = 0; n < 3; n++) replicas.push(await openReplica(stack, url, sandbox))
  // The first one migrates and makes the admin.
  for (const { service } of replicas) await service.start()
  const registrar = new CampaignRegistrar(sandbox)
  // Two clients of each domain, at different replicas.
  const writers = domains.flatMap((domain, at) =>
    [0, 1].flatMap((n) => {
      const service = replicas[(at + n) % replicas.length]?.service
      return service ? [new CampaignWriter(service, domain, `${domain.slice(0, 2)}${n}`)] : []
    }),
  )
  const started = performance.now()
  let left = writes
  const isOver = () => left <= 0
  const running = writers.map(async (writer) => {
    while (left > 0) {
      const { done } = writer
      await writer.write()
      if (writer.done > done) left--
      else await pause(500)
    }
  })
  const faults = { kills: 0, stalls: 0, cuts: 0, lost_commits: 0, restarts: 0, silences: 0 }
  await Promise.all([
    ...running,
    registrar.trouble(isOver),
    ...replicas.map(({ service }, first) => crash(service, { first, isOver }, faults)),
    disconnect({ replicas, server, faults, isOver }),
  ])
  await registrar.calm()
  const [first] = replicas
  if (!first) throw new Error('no replica')
  for (const domain of domains) await expect.poll(() => writeLast(first.service, domain)).toBe(200)
  await using database = await connect(url)
  const countOpen = () => database.query(open).then((rows) => rows.length)
  await expect.poll(countOpen, { interval: 1_000 }).toBe(0)
  for (const { service } of replicas) await service.stop()

  const seconds = Math.round((performance.now() - started) / 1000)
  const sends = await database.query<{ domain: string; snapshot: Buffer; startedAt: number }>(sentZones)
  const ledger = readerOf(database)
  const suspensions = replicas.flatMap(({ service }) => service.suspensions)
  const report = await examine({ ledger, sends }, { writers, registrar, sandbox, suspensions })
  const excess = await database.query(exceeding, [Number(rate.split('/')[0])])
  process.stdout.write(`${JSON.stringify({ writes, seconds, faults, ...report.figures })}\n`)
  expect({ violations: report.violations, excess }).toEqual({ violations: [], excess: [] })
}, 3_600_000)

const openSandbox = () =>
  startSandbox({
    apiUser: 'tester',
    apiKey,
    rate,
    domains: domains.map((name) => ({
      name,
      hosts: [{ name: 'www', type: 'A', address: '192.0.2.1' }],
    })),
  })

async function openReplica(stack: AsyncDisposableStack, url: string, sandbox: Sandbox): Promise<Replica> {
  const proxy = stack.use(await PostgresProxy.open(url))
  const service = await ServiceProcess.create({
    DATA_DIR: mkdtempSync(join(tmpdir(), 'replica-')),
    DATABASE_URL: proxy.url,
    REGISTRAR_URL: sandbox.url,
    REGISTRAR_RATE: rate,
    REGISTRAR_TIMEOUT_MS: '1000',
  })
  stack.defer(() => service.stop('SIGKILL'))
  return { service, proxy }
}

interface Faults {
  kills: number
  stalls: number
  cuts: number
  lost_commits: number
  restarts: number
  silences: number
}

/** Kills a replica at the points of a write in turn, and starts it again; every fifth time it stalls first. */
async function crash(service: ServiceProcess, { first, isOver }: Course, faults: Faults) {
  await waitUntil(isOver, 3_000 + first * 8_000)
  for (let n = first; !isOver(); n++) {
    if (n % 5 === 2) {
      faults.stalls++
      await service.suspend(stallMs)
      await waitUntil(isOver, 5_000)
    }
    await service.stop('SIGKILL')
    faults.kills++
    await service.start(`${killPoints[n % killPoints.length]}:${4 + ((n * 7) % 20)}`)
    const until = performance.now() + 9_000
    while (service.isRunning && performance.now() < until && !isOver()) await pause(50)
    if (!service.isRunning) await service.start()
    await waitUntil(isOver, 15_000)
  }
  if (service.isRunning) await service.stop('SIGKILL')
  while (!service.isRunning) await service.start()
}

async function waitUntil(isOver: () => boolean, milliseconds: number) {
  const until = performance.now() + milliseconds
  while (performance.now() < until && !isOver()) await pause(100)
}

interface Course {
  first: number
  isOver: () => boolean
}

/** Cuts connections to the database, loses answers of COMMIT, and restarts the server. */
async function disconnect({
  replicas,
  server,
  faults,
  isOver,
}: {
  replicas: Replica[]
  server: ServerProcess
  faults: Faults
  isOver: () => boolean
}) {
  for (const { proxy } of replicas)
    proxy.onCommit = () => {
      if (isOver() || Math.random() > 0.003) return undefined
      faults.lost_commits++
      return Math.random() < 0.5 ? 'lose' : 'hide'
    }
  for (let n = 0; !isOver(); n++) {
    await pause(3_000)
    const proxy = replicas[n % replicas.length]?.proxy
    if (n % 3 === 1) {
      faults.cuts++
      proxy?.cut()
    }
    if (n % 10 === 5) {
      faults.silences++
      proxy?.silence()
      // Every third time longer than a lease.
      await pause(n % 30 === 15 ? stallMs : 7_000)
      proxy?.resume()
    }
    if (n % 12 === 8) {
      faults.restarts++
      await server.stop(n % 2 === 0 ? 'SIGINT' : 'SIGQUIT')
      await pause(500)
      await server.start()
    }
  }
}

// Changes a record that is there: the zone may be full.
const writeLast = async (service: ServiceProcess, domain: string) => {
  const body = { ttl: 60 + Math.floor(Math.random() * 1_000), values: ['192.0.2.1'] }
  return (await service.call('PUT', `/api/domains/${domain}/dns/rrsets/www/A`, body)).status
}

const open = `select from domain_service.changes where status in ('queued', 'sending')`

const sentZones = `select sends.domain, snapshot, started_at as "startedAt"
  from domain_service.sends join domain_service.zones on zones.digest = sends.zone
  order by sends.id`

/** Windows of a minute with more calls than the limit. */
const exceeding = `select * from (select at, count(*) over (order by at range between 59999 preceding and current row) as calls
  from domain_service.calls) windows where calls > $1`
