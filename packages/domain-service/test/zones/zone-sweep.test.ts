import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@domains-and-files/http'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test, vi } from 'vitest'
import { ZoneSweep } from '../../src/zones/zone-watch.ts'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { startReplicas } from '../support/replicas.ts'
import { apiKey, type Service, start, www } from '../support/start.ts'

const elsewhere = { name: 'd.com', dns: 'custom' as const, nameservers: ['ns.x.example'] }
const domains = [...['a.com', 'b.com', 'c.com'].map((name) => ({ name, hosts: [www] })), elsewhere]
const getHosts = 'dns.gethosts'
const env = { DRIFT_INTERVAL_S: '3600', REGISTRAR_RATE: '20/minute,700/hour,8000/day' }
const sweepOf = async (service: Service) => JSON.parse((await service.call('GET', '/api/registrar')).text).sweep

/** Moves the clock until something holds, and not while a read is under way: the next one would follow it at once. */
const driveUntil = (clock: FakeClock, service: Service, check: () => void) =>
  driveClock(clock, service, vi.waitFor(check, { interval: 5, timeout: 600_000 }), 2_500)

test('a sweep reads each zone once in its interval, at most a sixth of the readers in a minute', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock, env })
  await service.call('GET', '/api/domains')
  const sweepState = () => sweepOf(service)
  const reads = () => service.commands().filter((each) => each === getHosts).length
  /** Moves the clock until so many zones were read. @returns how long that took. */
  const advanceTo = async (count: number) => {
    const from = clock.now()
    await driveUntil(clock, service, () => expect(reads()).toBe(count))
    return clock.now() - from
  }

  await advanceTo(1)
  await expect.poll(async () => (await sweepState()).seen).toBe(1)
  const begun = await sweepState()
  const tookMs = await advanceTo(3)
  await expect.poll(async () => (await sweepState()).seen).toBe(3)
  await clock.advance(600_000)
  const readsAfter = reads()
  await service.sandbox.setZone('b.com', { hosts: [{ ...www, name: 'panel' }] })
  const found = async () => (await service.call('GET', '/api/changes?domain=b.com')).body.change_list ?? []
  await expect
    .poll(async () => {
      await clock.advance(61_000)
      return (await found()).length
    })
    .toBe(1)

  expect(begun).toMatchObject({ interval_s: 3600, is_active: true, domains: 3 })
  expect(tookMs).toBeGreaterThan(115_000)
  expect(readsAfter).toBe(3)
  expect(await found()).toMatchObject([{ by: null, reason: 'outside', domain: 'b.com' }])
})

test('a sweep reads the longest unseen first, and nothing with an interval of 0', async () => {
  const clock = new FakeClock()
  const read: string[] = []
  const at = (hoursAgo: number) => ({
    readAt: clock.now() - hoursAgo * 3_600_000,
    isPending: false,
  })
  const seen = new Map([
    ['a.com', at(2)],
    ['b.com', at(4)],
    ['c.com', at(3)],
  ])
  const open = (intervalMs: number) =>
    new ZoneSweep({
      ledger: { knownZones: { sightings: async () => seen } } as never, // Only what it uses.
      registrar: { zone: async ({ name }: { name: string }) => read.push(name) } as never,
      domains: { managed: [...seen.keys()] },
      intervalMs,
      isActive: () => true,
      clock,
      log: createLogger({ name: 'test', level: 'silent' }),
    })

  const off = open(0)
  await clock.advance(120_000)
  off.close()
  const readByNone = read.splice(0)
  const sweep = open(3_600_000)
  await clock.advance(120_000)
  sweep.close()

  expect(readByNone).toEqual([])
  expect(read).toEqual(['b.com', 'c.com', 'a.com'])
})

test('a sweep goes on where it was after a restart', async () => {
  const clock = new FakeClock()
  await using sandbox = await startSandbox({ apiUser: 'tester', apiKey, domains, now: clock.now })
  const dataDir = mkdtempSync(join(tmpdir(), 'sweep-'))
  const readZones = () => sandbox.calls.flatMap(({ command, domain }) => (command.endsWith(getHosts) ? domain : []))
  for (const count of [1, 3]) {
    await using service = await start({ sandbox, dataDir, clock, env })
    await service.call('GET', '/api/domains')
    await driveUntil(clock, service, () => expect(readZones()).toHaveLength(count))
    await expect.poll(async () => (await sweepOf(service)).seen).toBe(count)
  }
  rmSync(dataDir, { recursive: true })

  expect(readZones().sort()).toEqual(['a.com', 'b.com', 'c.com'])
})

test('of several replicas one sweeps, and another when that one has stopped', async () => {
  await using stack = await startReplicas(2, { domains, env })
  const active = async (replicas: Service[]) => {
    const states = await Promise.all(replicas.map(sweepOf))
    return replicas.filter((_, index) => states[index].is_active)
  }
  await expect.poll(async () => (await active(stack.replicas)).length).toBe(1)
  const [first] = await active(stack.replicas)
  await first?.close()
  const others = stack.replicas.filter((each) => each !== first)

  await expect.poll(() => active(others)).toEqual(others)
})
