import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { FakeClock } from '../support/fake-clock.ts'
import { apiKey, realRate, type Service, start } from '../support/start.ts'

const State = z.object({
  calls_waiting: z.number(),
  domain_list: z.object({
    domains: z.number().nullable(),
    is_reading: z.boolean(),
    pages_read: z.number(),
  }),
})
const stateOf = async (service: Service) => State.parse((await service.call('GET', '/api/registrar')).body)

const often = { interval: 2 }

/** So many domains of others, and one that the user `limited` may see. */
const domainsOf = (count: number) => [
  ...Array.from({ length: count }, (_, n) => ({ name: `d${String(n).padStart(5, '0')}.com` })),
  { name: 'example.com' },
]

async function startAtRealRate(count: number, env: Record<string, string> = {}) {
  const clock = new FakeClock()
  const settings = { REGISTRAR_RATE: realRate, ...env }
  const service = await start({ clock, domains: domainsOf(count), env: settings })
  const list = (query = '', user = 'limited') => service.call('GET', `/api/domains${query}`, { user })
  return { clock, service, list }
}

/** Moves the clock from slot to slot until the reading under way is complete. */
async function finishReading(service: Service, clock: FakeClock) {
  for (;;) {
    const isSettled = async () => {
      const { calls_waiting, domain_list } = await stateOf(service)
      return !domain_list.is_reading || calls_waiting > 0
    }
    await expect.poll(isSettled, often).toBe(true)
    if (!(await stateOf(service)).domain_list.is_reading) return
    await clock.advanceToNext()
  }
}

const pagesRead = (service: Service) =>
  service.sandbox.calls
    .filter(({ command }) => command === 'namecheap.domains.getlist')
    .map(({ params }) => Number(params.Page))

test('a limited user lists an account of 901 domains at once; searching, sorting and paging cost no call', async () => {
  const { service, list } = await startAtRealRate(900)
  await using _ = service

  const first = await list()
  const calls = service.commands().length
  const all = await Promise.all([
    list('?search_term=EXAM', 'admin'),
    list('?sort_by=NAME_DESC&page_size=2', 'admin'),
    list('?page=10&page_size=100', 'admin'),
    list('?list_type=EXPIRED', 'viewer'),
  ])

  expect(first.body).toMatchObject({
    domains: [{ name: 'example.com' }],
    pagination: { total_items: 1 },
  })
  expect(calls).toBe(10)
  expect(all.map(({ body }) => body.domains?.map(({ name }) => name).slice(0, 2))).toEqual([
    ['example.com'],
    ['example.com', 'd00899.com'],
    ['example.com'],
    [],
  ])
  expect(service.commands()).toHaveLength(calls)
})

test('an account of 2,501 domains: 503 with a truthful Retry-After first, then the list; writes go on', async () => {
  const { clock, service, list } = await startAtRealRate(2_500)
  await using _ = service

  const early = await list()
  const write = await service.call('POST', '/api/domains/example.com/dns/hosts/A', {
    body: { name: 'x', address: '192.0.2.9' },
  })
  expect(early).toMatchObject({ status: 503, body: { code: 'registrar_busy' } })
  expect(write.status).toBe(201)
  const retryAt = clock.now() + 1000 * Number(early.headers.get('retry-after'))

  await finishReading(service, clock)
  expect(clock.now()).toBeLessThanOrEqual(retryAt)
  const late = await list()

  expect(late.body).toMatchObject({ domains: [{ name: 'example.com' }] })
  expect(pagesRead(service)).toEqual(Array.from({ length: 26 }, (_, n) => n + 1))
})

test('while a large account is read, callers that may see all get pages: read ones from the list, others from the registrar', async () => {
  const { service, list } = await startAtRealRate(2_500)
  await using _ = service

  const first = await list('?page_size=50', 'viewer')
  const second = await list('?page_size=50&page=2', 'viewer')
  const last = await list('?page_size=3&sort_by=NAME_DESC', 'viewer')

  expect(first.body.domains?.[0]?.name).toBe('d00000.com')
  expect(second.body.domains?.[0]?.name).toBe('d00050.com')
  expect(last.body.domains?.map(({ name }) => name)).toEqual(['example.com', 'd02499.com', 'd02498.com'])
  expect(last.body).toMatchObject({ pagination: { total_items: 2_501 } })
  const sizes = service.sandbox.calls.map(({ params }) => params.PageSize)
  expect(sizes.filter((size) => size !== '100')).toEqual(['12'])
})

test('a restart loses no page that was read, and nobody waits after the first reading', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'domain-list-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const clock = new FakeClock()
  const domains = domainsOf(1_500)
  await using sandbox = await startSandbox({ apiUser: 'tester', apiKey, rate: 'off', domains })
  const restart = () => start({ clock, sandbox, dataDir, env: { REGISTRAR_RATE: realRate, DOMAINS_TTL_MS: '60000' } })

  const first = await restart()
  await first.call('GET', '/api/domains', { user: 'limited' })
  await expect.poll(async () => (await stateOf(first)).calls_waiting, often).toBe(1)
  await first.close()
  const second = await restart()
  await clock.advance(0)
  await finishReading(second, clock)
  await second.close()
  const pages = pagesRead(second)
  const third = await restart()
  const list = await third.call('GET', '/api/domains', { user: 'limited' })
  await third.close()

  expect(pages).toEqual(Array.from({ length: 16 }, (_, n) => n + 1))
  expect(list.body.domains).toMatchObject([{ name: 'example.com' }])
  expect(pagesRead(third)).toEqual(pages)
})

test('10,001 domains are read at the real rate, within the readers’ share', async () => {
  const { clock, service, list } = await startAtRealRate(10_000)
  await using _ = service
  const startedAt = clock.now()

  const early = await list()
  await finishReading(service, clock)

  const minutes = (clock.now() - startedAt) / 60_000
  expect(Number(early.headers.get('retry-after')) / 60).toBeGreaterThanOrEqual(minutes)
  expect(minutes).toBeLessThan(20)
  expect(pagesRead(service)).toHaveLength(101)
  expect((await list()).body).toMatchObject({ pagination: { total_items: 1 } })
})

test('the list is refreshed in the background, and what is new is an event', async () => {
  const { clock, service, list } = await startAtRealRate(3, { DOMAINS_TTL_MS: '60000' })
  await using _ = service
  await list('', 'admin')
  await service.sandbox.addDomain({ name: 'new.net' })

  await clock.advance(59_999)
  const before = await list('', 'admin')
  await clock.advance(1)
  await finishReading(service, clock)
  const after = await list('', 'admin')

  expect(before.headers.get('age')).toBe('59')
  expect(before.body).toMatchObject({ pagination: { total_items: 4 } })
  expect(after.headers.get('age')).toBe('0')
  expect(after.body).toMatchObject({ pagination: { total_items: 5 } })
  const added = async (user: string) => (await service.call('GET', '/api/events?types=domain.added', { user })).text
  await expect.poll(() => added('admin')).toContain('"name":"new.net"')
  expect(await added('limited')).toContain('"events":[]')
})

test('a domain that expires soon is an event on its day, also while the registrar fails', async () => {
  const clock = new FakeClock()
  const expires = new Date(clock.now() + 31 * 86_400_000).toISOString().slice(0, 10)
  const domains = [{ name: 'example.com', expires }]
  await using service = await start({ clock, domains })
  const daysLeft = async () => {
    const { text } = await service.call('GET', '/api/events?types=domain.expiring')
    return [...text.matchAll(/"days_left":(\d+)/g)].map(([, days]) => Number(days))
  }
  await service.call('GET', '/api/domains')
  await expect.poll(daysLeft).toEqual([31])
  service.sandbox.fault({ kind: 'html', times: 0 })

  await clock.advance(86_400_000)

  await expect.poll(daysLeft).toEqual([31, 30])
})

test('no-cache reads a list of one page afresh', async () => {
  const { clock, service, list } = await startAtRealRate(3)
  await using _ = service
  await list('', 'admin')
  await service.sandbox.addDomain({ name: 'new.net' })
  await clock.advance(1)

  const { body } = await service.call('GET', '/api/domains', {
    headers: { 'cache-control': 'no-cache' },
  })

  expect(body).toMatchObject({ pagination: { total_items: 5 } })
})

test('while the registrar fails, the list that is here serves, with a warning', async () => {
  const { clock, service, list } = await startAtRealRate(3, { DOMAINS_TTL_MS: '60000' })
  await using _ = service
  await list()
  service.sandbox.fault({ kind: 'error', number: '3031510', times: 0 })

  await clock.advance(60_000)
  await finishReading(service, clock)
  await clock.advance(1_000)
  const { status, headers, body } = await list()

  expect(status).toBe(200)
  expect(body.domains).toMatchObject([{ name: 'example.com' }])
  expect(headers.get('warning')).toMatch(/^110 /)
  expect(headers.get('age')).toBe('61')
})

test('a first reading that fails is the registrar’s error; the next request reads on', async () => {
  const { service, list } = await startAtRealRate(150)
  await using _ = service
  service.sandbox.fault({ kind: 'error', number: '3031510', after: 1 })

  const failed = await list()
  const succeeded = await list()

  expect([failed.status, failed.body.code]).toEqual([502, 'registrar_error'])
  expect(succeeded.body.domains).toMatchObject([{ name: 'example.com' }])
  expect(pagesRead(service)).toEqual([1, 2, 2])
})

test('another account does not see the list of the one before', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'domain-list-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  // Its registrar stays: another one at the same port would be the same account.
  await using before = await start({ dataDir, domains: [{ name: 'theirs.com' }] })
  await before.call('GET', '/api/domains')
  await before.close()

  await using service = await start({ dataDir, domains: [{ name: 'ours.com' }] })
  const { body } = await service.call('GET', '/api/domains')

  expect(body.domains).toMatchObject([{ name: 'ours.com' }])
})
