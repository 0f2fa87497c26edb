import { setTimeout as wait } from 'node:timers/promises'
import { at, overload } from './overload.ts'
import { type Service, startServices } from './services.ts'

// Mixed load on both services for SOAK_MINUTES (20), then three times what each can serve. Prints the curve of memory,
// descriptors and latency; ends with status 1 if something failed, grew or stayed slow.
const minutes = Number(process.env.SOAK_MINUTES ?? 20)
const callers = 16

await using services = await startServices()
const { files, names } = services
const failures: string[] = []
let latencies: number[] = []

async function call(service: Service, method: string, path: string, body?: FormData | string) {
  const since = performance.now()
  const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${service.token}`,
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    },
    ...(body === undefined ? {} : { body }),
  })
  await answer.arrayBuffer()
  latencies.push(performance.now() - since)
  return answer.status
}

async function expectOf(statuses: number[], ...asked: Parameters<typeof call>) {
  const status = await call(...asked)
  if (!statuses.includes(status)) failures.push(`${asked[1]} ${asked[2]}: ${status}`)
}

const pick = (count: number) => Math.floor(Math.random() * count)

function form(path: string, bytes: number) {
  const parts = new FormData()
  parts.append('path', path)
  parts.append('file', new Blob([Buffer.alloc(bytes, `${path} ${pick(1000)} `)]), 'f')
  return parts
}

// What people do, about as often: files are mostly read, zones mostly looked at.
const deeds: [number, () => Promise<void>][] = [
  [40, () => expectOf([200, 404], files, 'GET', `/static/soak/${pick(200)}.txt`)],
  [
    10,
    () =>
      expectOf(
        [200, 201],
        files,
        'POST',
        '/api/files/upload',
        form(`soak/${pick(200)}.txt`, 1 + pick(50_000)),
      ),
  ],
  [
    1,
    () =>
      expectOf([200, 201], files, 'POST', '/api/files/upload', form('soak/large.bin', 5_000_000)),
  ],
  [5, () => expectOf([204, 404], files, 'DELETE', `/api/files/soak/${pick(200)}.txt`)],
  [8, () => expectOf([200], files, 'GET', `/api/files/?search=${pick(20)}`)],
  [4, () => expectOf([200], files, 'GET', '/api/files/tree')],
  [2, () => expectOf([200], files, 'GET', '/api/versions/stats')],
  [20, () => expectOf([200], names, 'GET', `/api/domains/soak${pick(20)}.com/dns/hosts`)],
  [5, () => expectOf([200], names, 'GET', '/api/domains')],
  [
    3,
    () =>
      expectOf(
        [201, 409],
        names,
        'POST',
        `/api/domains/soak${pick(20)}.com/dns/hosts/A`,
        JSON.stringify({ name: `w${pick(30)}`, address: '192.0.2.1' }),
      ),
  ],
  [
    2,
    () =>
      expectOf(
        [200],
        names,
        'PUT',
        `/api/domains/soak${pick(20)}.com/dns/hosts`,
        JSON.stringify({ hosts: [{ name: '@', type: 'TXT', address: `v=${pick(1e6)}` }] }),
      ),
  ],
]
const hat = deeds.flatMap(([weight, deed]) => Array<() => Promise<void>>(weight).fill(deed))

const end = Date.now() + minutes * 60_000
const load = Array.from({ length: callers }, async () => {
  while (Date.now() < end)
    await hat[pick(hat.length)]?.().catch((error) => failures.push(String(error)))
})

const rows: {
  s: number
  perSecond: number
  p50: number
  p99: number
  files: number
  filesFds: number
  names: number
  namesFds: number
}[] = []
const step = Math.max(5, Math.round((minutes * 60) / 30))
for (let s = step; Date.now() < end; s += step) {
  latencies = []
  await wait(step * 1000)
  const [ofFiles, ofNames] = [files.measure(), names.measure()]
  rows.push({
    s,
    perSecond: Math.round(latencies.length / step),
    p50: at(latencies, 0.5),
    p99: at(latencies, 0.99),
    files: ofFiles.rss,
    filesFds: ofFiles.fds,
    names: ofNames.rss,
    namesFds: ofNames.fds,
  })
}
await Promise.all(load)
console.log(
  'Mixed load; files and names are the megabytes of the services, with their open descriptors',
)
console.table(rows)

// The first half is warming up; what grows after it goes on growing.
const half = rows.slice(Math.floor(rows.length / 2))
const mean = (values: number[]) =>
  values.reduce((sum, value) => sum + value, 0) / (values.length || 1)
for (const key of ['files', 'names', 'filesFds', 'namesFds', 'p99'] as const) {
  const middle = Math.floor(half.length / 2)
  const [before, after] = [half.slice(0, middle), half.slice(middle)].map((part) =>
    mean(part.map((row) => row[key])),
  )
  const most = key === 'p99' ? 2 : 1.25
  if (before && after && after > before * most)
    failures.push(`${key} grew from ${before} to ${after}`)
}
for (const service of [files, names]) failures.push(...(await overload(service, 15)))

for (const failure of failures.slice(0, 20)) console.log(`FAILED: ${failure}`)
console.log(failures.length === 0 ? 'All held.' : `${failures.length} failures`)
process.exitCode = failures.length === 0 ? 0 : 1
