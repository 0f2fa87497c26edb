import { Agent, request } from 'undici'
import { compare, type Finding } from '../harness/finding.ts'
import { alternate, median } from '../harness/rounds.ts'
import { bearer, type Service, startDomains } from '../harness/services.ts'
import { settings } from '../harness/settings.ts'
import { PlainClient } from '../peers/registrar-client.ts'

const delayMs = 50
const address = '192.0.2.9'

/** What our service adds to the one registrar call of an uncached zone read. */
export async function readFresh(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs })
  const client = new PlainClient(`${both.registrar.url}/xml.response`)
  const domain = 'alder-and-finch.com'
  const ask = { path: `/api/domains/${domain}/dns/hosts`, headers: { 'cache-control': 'no-cache' } }
  const contenders = {
    ours: () => timeMedian(() => call(both.service, ask)),
    'the registrar itself, by undici': () => timeMedian(() => client.read(domain)),
  }
  await clearCalls(both.registrar.url)
  await contenders.ours()
  const calls = await countCalls(both.registrar.url)
  if (calls < 2) throw new Error('responses come from the cache')
  const figures = await alternate(contenders)
  await client.close()
  const work = `GET …/dns/hosts, not cached, registrar at ${delayMs} ms: p50`
  return compare({ work, unit: 'ms' }, figures, {})
}

/** A hundred concurrent additions to one domain, and the registrar calls that they take. */
export async function addHundred(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs })
  const { service, registrar } = both
  const client = new PlainClient(`${registrar.url}/xml.response`)
  const domains = await listPlain(service)
  const next = () => domains.pop() ?? 'no domain left'
  const calls: number[] = []
  const addByClient = async (domain: string, count: number) => {
    const began = performance.now()
    for (let n = 0; n < count; n += 1) {
      await client.add(domain, { name: `h${n}`, type: 'A', address, ttl: '1800' })
    }
    return count / ((performance.now() - began) / 1000)
  }
  const addByService = async (domain: string, count: number) => {
    const before = (await client.read(domain)).length
    await clearCalls(registrar.url)
    const perSecond = await addAtOnce([service], { domain, count })
    calls.push(await countCalls(registrar.url))
    if ((await client.read(domain)).length !== before + count) throw new Error('records are lost')
    return perSecond
  }
  await addByService(next(), 10)
  calls.length = 0

  const figures = await alternate(
    {
      ours: () => addByService(next(), 100),
      'a client: read, write, verify, one after another': () => addByClient(next(), 100),
    },
    Math.min(settings.rounds, 3),
  )
  await client.close()
  const work = `100 adds at once to one domain, registrar at ${delayMs} ms`
  return [
    ...compare({ work, unit: 'adds/s' }, figures, {
      'a client: read, write, verify, one after another': { of: 'ratio', atLeast: 20 },
    }),
    { work, unit: 'calls', ours: calls, goal: { of: 'figure', atMost: 8 } },
  ]
}

/** Adds records at replicas in turn, all at once; returns how many per second. */
export async function addAtOnce(
  replicas: Service[],
  { domain, count }: { domain: string; count: number },
): Promise<number> {
  const path = `/api/domains/${domain}/dns/hosts/A`
  const began = performance.now()
  const adding = Array.from({ length: count }, async (_, n) => {
    const replica = replicas[n % replicas.length]
    if (replica) await call(replica, { path, body: { name: `h${n}`, address } })
  })
  await Promise.all(adding)
  return count / ((performance.now() - began) / 1000)
}

// One connection per client.
const clients = new Agent({ connections: 128 })

interface Call {
  path: string
  headers?: Record<string, string>
  body?: object
}

async function call(service: Service, { path, headers = {}, body }: Call): Promise<unknown> {
  const answer = await request(service.url + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...bearer(service),
      ...headers,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    body: body ? JSON.stringify(body) : null,
    dispatcher: clients,
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  return JSON.parse(text)
}

/** Median milliseconds of sequential calls during one turn. */
export async function timeMedian(act: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (const end = performance.now() + settings.seconds * 1000; performance.now() < end; ) {
    const began = performance.now()
    await act()
    times.push(performance.now() - began)
  }
  return median(times)
}

// The sandbox's plain domains hold two records each.
export async function listPlain(service: Service): Promise<string[]> {
  const text = JSON.stringify(await call(service, { path: '/api/domains?page_size=100' }))
  return [...text.matchAll(/"((?:amber|birch|cedar|dune|ember|fern|gale|heron)\w+\.\w+)"/g)].map(
    ([, name = '']) => name,
  )
}

export const clearCalls = (registrar: string) => fetch(`${registrar}/_calls`, { method: 'DELETE' })

export async function countCalls(registrar: string): Promise<number> {
  const text = await (await fetch(`${registrar}/_calls`)).text()
  return text.match(/"command":/g)?.length ?? 0
}
