import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Answer, type Service, start } from '../../packages/domain-service/test/support/start.ts'
import { faults } from './faults.ts'

// FAULT_WRITES=5000 is the long form; `npm run faults` prints the outcomes.
const writes = Number(process.env.FAULT_WRITES ?? 80)
const writers = 8
const domains = ['example.com', 'example.net', 'example.co.uk']

const untouched = [
  { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 0, ttl: 1799 },
  { name: '@', type: 'TXT', address: 'v=spf1 +a "x" ;  ~all', ttl: 60 },
  { name: 'Kept', type: 'CNAME', address: 'Target.Example.net', ttl: 60 },
]

const changedLast = { name: 'last', type: 'A', address: '192.0.2.1', ttl: 60 }

const domainOf = (number: number) => domains[number % domains.length] ?? ''

const strikes = fc.sample(
  fc.record({
    fault: faults,
    at: fc.record({
      command: fc.constantFrom('namecheap.domains.dns.getHosts', 'namecheap.domains.dns.setHosts'),
      domain: fc.constantFrom(...domains),
      after: fc.integer({ min: 0, max: 2 }),
    }),
  }),
  writes,
)

type Promised = 'done' | 'not done' | 'open'

/** What the responses promise about one record that one writer added and possibly removed. */
interface Fate {
  domain: string
  name: string
  added: Promised
  removed?: Promised
  /** The request that the registrar reported as done, but whose zone could not be read back: the history resolves it. */
  unverified?: string
  /** Request ids of changes reported as done, and of those reported as failed. */
  done: string[]
  failed: string[]
}

test(`of ${writes} writes through a registrar that fails in every way, each outcome is the reported one`, async () => {
  await using service = await start({
    domains: domains.map((name) => ({ name, emailType: 'MX', hosts: [...untouched, changedLast] })),
    env: { REGISTRAR_TIMEOUT_MS: '400', CACHE_TTL_MS: '50' },
  })
  const fates: Fate[] = []
  const count = new Counts()
  const isOver = () => count.of('writes') >= writes

  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      while (!isOver()) await Promise.all([writeOnce(service, { fates, count, writer }), readOnce(service, count)])
    }),
  )
  service.sandbox.clearFaults()
  await resolveUnverified(service, fates)

  // Late writes have happened by now, and have been undone where necessary.
  await expect.poll(() => findBroken(service, fates)).toEqual([])
  for (const name of domains) {
    const live = service.sandbox.zone(name)
    expect(live.emailType).toBe('MX')
    expect(live.hosts).toEqual(expect.arrayContaining(untouched.map((row) => expect.objectContaining(row))))
  }
  const states = await readHistory(service)
  const done = fates.flatMap((fate) => fate.done)
  const failed = fates.flatMap((fate) => fate.failed)
  // What was sent is in the history; a request that was reported as failed is never confirmed there.
  expect(done.filter((id) => states.get(id) !== 'confirmed')).toEqual([])
  expect(failed.filter((id) => ![undefined, 'refused'].includes(states.get(id)))).toEqual([])
  process.stdout.write(`${count.tell()}\n`)
}, 3_600_000)

interface Campaign {
  fates: Fate[]
  count: Counts
  writer: number
}

async function writeOnce(service: Service, { fates, count, writer }: Campaign) {
  const number = count.add('attempts')
  // A request that the open circuit rejects meets no fault: more of them would keep the circuit open.
  if (count.of('faults') * 2 <= count.of('writes')) strike(service, count)
  const own = fates.filter(
    ({ name, added, removed }) => name.startsWith(`w${writer}-`) && added === 'done' && removed === undefined,
  )
  const fate = own.length > 3 ? own[0] : undefined
  const id = `write-${number}`
  if (fate) {
    fate.removed = 'open'
    const answer = await remove(service, fate, id)
    fate.removed = note(answer, { fate, id, count })
    return waitForBreaker(answer)
  }
  const added: Fate = {
    domain: domainOf(number),
    name: `w${writer}-${number}`,
    added: 'open',
    done: [],
    failed: [],
  }
  fates.push(added)
  const answer = await service.call('POST', `/api/domains/${added.domain}/dns/hosts/A`, {
    body: { name: added.name, address: '192.0.2.1' },
    headers: { 'x-request-id': id },
  })
  added.added = note(answer, { fate: added, id, count })
  await waitForBreaker(answer)
}

// The circuit breaker is open: retry before Retry-After, but not at once.
async function waitForBreaker({ body }: Answer) {
  if (body.code === 'registrar_unavailable') await sleep(50)
}

async function remove(service: Service, { domain, name }: Fate, id: string): Promise<Answer> {
  const path = `/api/domains/${domain}/dns/hosts`
  const { body, ...answer } = await service.call('GET', path)
  const host = body.hosts?.find((each) => each.name === name)
  if (!host) return { ...answer, status: 599, body: { ...body, code: 'not_tried' } }
  return service.call('DELETE', `${path}/${host.id}`, { headers: { 'x-request-id': id } })
}

function note({ status, body }: Answer, { fate, id, count }: { fate: Fate; id: string; count: Counts }): Promised {
  count.add(`answer ${status} ${body.code ?? ''}`.trim())
  // Rejected before any registrar call: tests nothing.
  if (body.code !== 'registrar_unavailable') count.add('writes')
  if (status < 300 && body.verified === false) {
    fate.unverified = id
    return 'open'
  }
  if (status < 300) {
    fate.done.push(id)
    return 'done'
  }
  if (body.code === 'write_not_confirmed') return 'open'
  fate.failed.push(id)
  return 'not done'
}

function strike(service: Service, count: Counts) {
  const each = strikes[count.add('faults') % strikes.length]
  if (!each) return
  count.add(`fault ${each.fault.kind}`)
  service.sandbox.fault({ ...each.fault, ...each.at })
}

async function readOnce(service: Service, count: Counts) {
  const domain = domainOf(count.add('reads'))
  const { status, body } = await service.call('GET', `/api/domains/${domain}/dns/hosts`)
  count.add(`read ${status}`)
  if (status !== 200) return
  const names = body.hosts?.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['@', '@', 'kept']))
}

// The registrar may report a write as done that it ignores: what could not be read back stays open until a later write of the
// domain shows it.
async function resolveUnverified(service: Service, fates: Fate[]) {
  const unverified = fates.filter((fate) => fate.unverified !== undefined)
  for (const domain of new Set(unverified.map((fate) => fate.domain))) {
    await expect.poll(() => writeLast(service, domain, 300)).toBeLessThan(300)
    // Its read comes after the write before, and resolves what is older.
    await expect.poll(() => writeLast(service, domain, 600)).toBeLessThan(300)
  }
  const states = await readHistory(service)
  for (const fate of unverified) {
    const state = states.get(fate.unverified ?? '')
    expect(state).toMatch(/^(confirmed|unconfirmed)$/)
    if (state !== 'confirmed') continue
    if (fate.removed === undefined) fate.added = 'done'
    else fate.removed = 'done'
  }
}

async function writeLast(service: Service, domain: string, ttl: number): Promise<number> {
  const body = { ttl, values: ['192.0.2.1'] }
  return (await service.call('PUT', `/api/domains/${domain}/dns/rrsets/last/A`, { body })).status
}

/** Records that are present but should not be, and the reverse. */
function findBroken(service: Service, fates: Fate[]): string[] {
  const live = new Set(
    domains.flatMap((domain) => service.sandbox.zone(domain).hosts.map(({ name }) => `${name} in ${domain}`)),
  )
  return fates.flatMap(({ domain, name, added, removed = 'not' }) => {
    if (added === 'open' || removed === 'open') return []
    const isWanted = added === 'done' && removed !== 'done'
    const isThere = live.delete(`${name} in ${domain}`)
    const promised = `added: ${added}, removed: ${removed}`
    return isThere === isWanted ? [] : `${name} in ${domain} is ${isThere ? 'there' : 'not there'}, ${promised}`
  })
}

/** The state of each change that was sent, by its request id. */
async function readHistory(service: Service): Promise<Map<string, string>> {
  const states = new Map<string, string>()
  for (const domain of domains) {
    for (let page = 1, isOver = false; !isOver; page += 1) {
      const path = `/api/domains/${domain}/dns/history?page_size=100&page=${page}`
      const { body } = await service.call('GET', path)
      for (const { request_id, status, verified } of body.history ?? []) {
        states.set(String(request_id), verified === false ? 'unverified' : String(status))
      }
      isOver = body.history?.length === 0
    }
  }
  return states
}

class Counts {
  readonly #counts = new Map<string, number>()

  add(name: string): number {
    const count = this.of(name) + 1
    this.#counts.set(name, count)
    return count
  }

  of = (name: string) => this.#counts.get(name) ?? 0

  tell = () =>
    [...this.#counts]
      .sort()
      .map(([name, count]) => `${count}\t${name}`)
      .join('\n')
}
