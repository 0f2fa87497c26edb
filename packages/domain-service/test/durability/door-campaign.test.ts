import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Sandbox, startSandbox } from '@domains-and-files/registrar-sandbox'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { startAcmeServer } from '../../../../test/e2e/integrations/acme-server.ts'
import { startBridge } from '../../../../test/e2e/integrations/dns-service.ts'
import { runLego } from '../../../../test/e2e/integrations/lego.ts'
import { startRegistrarFront } from '../../../../test/e2e/integrations/registrar-front.ts'
import {
  consoleClient,
  createToken,
  type DoorClient,
  domain,
  dyndnsClient,
  npmClient,
  protocolClient,
  repeat,
  restClient,
} from '../support/door-clients.ts'
import { killPoints } from '../support/kill-at.ts'
import { turnNpmClients } from '../support/npm-client.ts'
import { ServiceProcess } from '../support/service-process.ts'
import { apiKey } from '../support/start.ts'

// Clients of the registrar's protocol, the console, REST and dyndns2 write one domain at the same time, each its own
// records, while the service is killed. DOOR_WRITES=1000 makes the campaign long, DOOR_CLIENTS that many of each kind,
// FAULT_RATE=20/minute,700/hour,8000/day the registrar's own, and DOOR_LEGO=1 adds lego, with Debian's pebble.
const writes = Number(process.env.DOOR_WRITES ?? 60)
const clientsOfKind = Number(process.env.DOOR_CLIENTS ?? 1)
const seed = Number(process.env.RANDOM_SEED ?? 1)
const rate = process.env.FAULT_RATE ?? '1200/minute'
const hasLego = process.env.DOOR_LEGO !== undefined

const legoChallenge = '_acme-challenge.lego'

const Step = fc.record({ at: fc.nat(1_000), kind: fc.constantFrom('add', 'change', 'remove') })

test(`${writes} writes of clients of the protocol, console, REST and dyndns2 lose no record, and leave none, while the service is killed`, async () => {
  await using stack = new AsyncDisposableStack()
  const hosts = [{ name: 'www', type: 'A', address: '192.0.2.1' }]
  const sandbox = stack.use(await startSandbox({ apiUser: 'tester', apiKey, rate, domains: [{ name: domain, hosts }] }))
  const folder = mkdtempSync(join(tmpdir(), 'door-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const acme = hasLego ? stack.use(await startAcmeServer(folder)) : undefined
  const bridge = acme && (await startBridge(sandbox, acme.publish))
  stack.defer(() => bridge?.close())
  const service = await ServiceProcess.create({
    DATA_DIR: folder,
    REGISTRAR_URL: bridge?.url ?? sandbox.url,
    REGISTRAR_RATE: rate,
  })
  stack.defer(() => service.stop('SIGKILL'))
  await service.start()
  stack.use(turnNpmClients(service.url))
  const clients = await openClients(service)
  if (acme) clients.push(await legoClient(service, { folder, acme }, stack))
  const command = 'namecheap.domains.dns.setHosts'
  for (let after = 5; after < writes; after += 15) sandbox.fault({ kind: after % 2 ? 'lost' : 'reset', command, after })

  let left = writes
  const started = performance.now()
  const running = clients.map(async (client, index) => {
    const steps = fc.sample(Step, { seed: seed + index, numRuns: writes })
    for (const step of steps) if (left-- > 0) await client.write(step)
  })
  await Promise.all([...running, crash(service, () => left <= 0)])
  await expect.poll(() => countOpen(service), { interval: 1_000, timeout: 600_000 }).toBe(0)

  const seconds = Math.round((performance.now() - started) / 1000)
  const calls = sandbox.calls.length
  process.stdout.write(`${JSON.stringify({ writes, clients: clients.length, seconds, kills: service.kills, calls })}\n`)
  // A lego whose connection a kill has broken does not repeat: what it has added, and what such runs have read, may stay.
  const live = sandbox.zone(domain).hosts.filter(({ name }) => name !== legoChallenge)
  const wanted = ['www A 192.0.2.1', ...clients.flatMap((client) => client.records())]
  expect(live.map(({ name, type, address }) => `${name} ${type} ${address}`).sort()).toEqual(wanted.sort())
  expect(changesAtRegistrar(sandbox)).toEqual(await changesInHistory(service))
  expect(sandbox.calls.filter(({ outcome }) => outcome === 'rate')).toEqual([])
}, 7_200_000)

async function openClients(service: ServiceProcess): Promise<DoorClient[]> {
  const clients: DoorClient[] = []
  for (let n = 0; n < clientsOfKind; n++)
    clients.push(
      await protocolClient(service, { name: `reader${n}`, readsAgain: true }),
      await protocolClient(service, { name: `writer${n}`, readsAgain: false }),
      await npmClient(service, `npm${n}`),
      consoleClient(service, `console${n}`),
      restClient(service, `rest${n}`),
      await dyndnsClient(service, `home${n}`),
    )
  return clients
}

async function legoClient(
  service: ServiceProcess,
  { folder, acme }: { folder: string; acme: Awaited<ReturnType<typeof startAcmeServer>> },
  stack: AsyncDisposableStack,
): Promise<DoorClient> {
  const front = stack.use(await startRegistrarFront(folder, service.url))
  const token = await createToken(service, { role: 'editor' })
  const names = [`lego.${domain}`]
  const { url } = service
  const write = async () => {
    const isDone = await repeat(service, () =>
      runLego({ folder, acme, url, token, names, front }).then(
        () => true,
        (error: Error) => {
          process.stdout.write(`lego again: ${error.message.slice(-300)}\n`)
          return undefined
        },
      ),
    )
    expect(isDone).toBe(true)
  }
  return { write, records: () => [] }
}

/** Kills the service at the points of a write in turn, and starts it again. */
async function crash(service: ServiceProcess, isOver: () => boolean) {
  for (let n = 0; !isOver(); n++) {
    await service.stop('SIGKILL')
    await service.start(`${killPoints[n % killPoints.length]}:${4 + ((n * 7) % 4)}`)
    while (service.isRunning && !isOver()) await pause(50)
  }
  await service.stop('SIGKILL')
  await service.start()
}

const count = (changes: string[]) => {
  const counts = new Map<string, number>()
  for (const change of changes.sort()) counts.set(change, (counts.get(change) ?? 0) + 1)
  return Object.fromEntries(counts)
}

/** How often each record was added or removed by the lists that the registrar took. */
function changesAtRegistrar({ calls }: Sandbox) {
  const changes: string[] = []
  let before = new Set(['www A 192.0.2.1 1800'])
  for (const { command, params, outcome, fault } of calls) {
    const isTaken = command.endsWith('.sethosts') && outcome === 'ok' && fault !== 'reset'
    if (!isTaken) continue
    const numbers = Object.keys(params).flatMap((name) => /^HostName(\d+)$/i.exec(name)?.[1] ?? [])
    const after = new Set(
      numbers.map((n) => ['HostName', 'RecordType', 'Address', 'TTL'].map((name) => params[`${name}${n}`]).join(' ')),
    )
    changes.push(...[...after].flatMap((each) => (before.has(each) ? [] : `+ ${each}`)))
    changes.push(...[...before].flatMap((each) => (after.has(each) ? [] : `- ${each}`)))
    before = after
  }
  return count(changes)
}

const Records = z.array(
  z
    .object({ name: z.string(), type: z.string(), address: z.string(), ttl: z.number() })
    .transform(({ name, type, address, ttl }) => `${name} ${type} ${address} ${ttl}`),
)
const History = z.object({
  history: z.array(
    z.object({
      by: z.literal('admin'),
      status: z.enum(['confirmed', 'refused', 'unconfirmed']),
      changes: z.object({ added: Records, removed: Records }),
    }),
  ),
  pagination: z.object({ total_pages: z.number() }),
})

/** How often each record was added or removed by the changes of the history; the unconfirmed ones were not carried out. */
async function changesInHistory(service: ServiceProcess) {
  const changes: string[] = []
  for (let page = 1, last = 1; page <= last; page++) {
    const path = `/api/domains/${domain}/dns/history?page_size=200&page=${page}`
    const { history, pagination } = History.parse((await service.insist('GET', path)).body)
    last = pagination.total_pages
    for (const { status, changes: entry } of history) {
      if (status !== 'confirmed') continue
      changes.push(...entry.added.map((each) => `+ ${each}`))
      changes.push(...entry.removed.map((each) => `- ${each}`))
    }
  }
  return count(changes)
}

async function countOpen(service: ServiceProcess): Promise<number> {
  const Found = z.object({ pagination: z.object({ total_items: z.number() }) })
  const counts = ['queued', 'sending'].map(async (status) => {
    const path = `/api/changes?page_size=1&status=${status}`
    return Found.parse((await service.insist('GET', path)).body).pagination.total_items
  })
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0)
}
