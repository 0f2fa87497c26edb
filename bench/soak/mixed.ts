import { setTimeout as wait } from 'node:timers/promises'
import { at } from './latency.ts'
import type { Service, Services } from './services.ts'

const callers = 16

interface Row {
  s: number
  perSecond: number
  p50: number
  p99: number
  files: number
  filesFds: number
  names: number
  namesFds: number
}

/** Mixed load on both services for so many minutes: nothing may fail, and memory, descriptors and times not grow. */
export async function mixedLoad(services: Services, minutes: number): Promise<string[]> {
  const failures: string[] = []
  let latencies: number[] = []
  const deeds = deedsOf(services, async (service, { method, path, body, statuses }) => {
    const since = performance.now()
    const status = await call(service, method, path, body)
    latencies.push(performance.now() - since)
    if (!statuses.includes(status)) failures.push(`${method} ${path}: ${status}`)
  })
  const end = Date.now() + minutes * 60_000
  const load = Array.from({ length: callers }, async () => {
    while (Date.now() < end) await deeds[pick(deeds.length)]?.().catch((error) => failures.push(String(error)))
  })

  const rows: Row[] = []
  const step = Math.max(5, Math.round((minutes * 60) / 30))
  for (let s = step; Date.now() < end; s += step) {
    latencies = []
    await wait(step * 1000)
    const [files, names] = [services.files.measure(), services.names.measure()]
    rows.push({
      s,
      perSecond: Math.round(latencies.length / step),
      p50: at(latencies, 0.5),
      p99: at(latencies, 0.99),
      files: files.rss,
      filesFds: files.fds,
      names: names.rss,
      namesFds: names.fds,
    })
  }
  await Promise.all(load)
  console.log('Mixed load; files and names are the megabytes of the services, with their open descriptors')
  console.table(rows)
  return [...failures, ...growthOf(rows)]
}

// The first half is warming up; what grows after it goes on growing.
function growthOf(rows: Row[]): string[] {
  const half = rows.slice(Math.floor(rows.length / 2))
  const middle = Math.floor(half.length / 2)
  return (['files', 'names', 'filesFds', 'namesFds', 'p99'] as const).flatMap((key) => {
    const [before, after] = [half.slice(0, middle), half.slice(middle)].map((part) => mean(part.map((row) => row[key])))
    const most = key === 'p99' ? 2 : 1.25
    const hasGrown = before && after && after > before * most
    return hasGrown ? [`${key} grew from ${before} to ${after}`] : []
  })
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1)

interface Asked {
  method: string
  path: string
  body?: FormData | string
  statuses: number[]
}

async function call(service: Service, method: string, path: string, body?: FormData | string) {
  const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${service.token}`,
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    },
    ...(body === undefined ? {} : { body }),
  })
  await answer.arrayBuffer()
  return answer.status
}

const pick = (count: number) => Math.floor(Math.random() * count)

function form(path: string, bytes: number) {
  const parts = new FormData()
  parts.append('path', path)
  parts.append('file', new Blob([Buffer.alloc(bytes, `${path} ${pick(1000)} `)]), 'f')
  return parts
}

// What people do, about as often: files are mostly read, zones mostly looked at.
function deedsOf(
  { files, names }: Services,
  ask: (service: Service, asked: Asked) => Promise<void>,
): (() => Promise<void>)[] {
  const read = (service: Service, path: string, statuses = [200]) => ask(service, { method: 'GET', path, statuses })
  const upload = (path: string, bytes: number) =>
    ask(files, {
      method: 'POST',
      path: '/api/files/upload',
      body: form(path, bytes),
      statuses: [200, 201],
    })
  const change = (method: string, path: string, body: object) =>
    ask(names, {
      method,
      path: `/api/domains/soak${pick(20)}.com/dns/hosts${path}`,
      body: JSON.stringify(body),
      statuses: [200, 201, 409],
    })
  const weighed: [number, () => Promise<void>][] = [
    [40, () => read(files, `/static/soak/${pick(200)}.txt`, [200, 404])],
    [10, () => upload(`soak/${pick(200)}.txt`, 1 + pick(50_000))],
    [1, () => upload('soak/large.bin', 5_000_000)],
    [
      5,
      () =>
        ask(files, {
          method: 'DELETE',
          path: `/api/files/soak/${pick(200)}.txt`,
          statuses: [204, 404],
        }),
    ],
    [8, () => read(files, `/api/files/?search=${pick(20)}`)],
    [4, () => read(files, '/api/files/tree')],
    [2, () => read(files, '/api/versions/stats')],
    [20, () => read(names, `/api/domains/soak${pick(20)}.com/dns/hosts`)],
    [5, () => read(names, '/api/domains')],
    [3, () => change('POST', '/A', { name: `w${pick(30)}`, address: '192.0.2.1' })],
    [2, () => change('PUT', '', { hosts: [{ name: '@', type: 'TXT', address: `v=${pick(1e6)}` }] })],
  ]
  return weighed.flatMap(([weight, deed]) => Array<() => Promise<void>>(weight).fill(deed))
}
