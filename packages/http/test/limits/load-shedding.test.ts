import { once } from 'node:events'
import net from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createMetrics } from '../../src/index.ts'
import { type Started, start } from '../support/start.ts'

const metricsToken = 'metrics-token-1234'

const figure = async (service: Started, name: string) => {
  const answer = await fetch(`${service.url}/metrics`, {
    headers: { authorization: `Bearer ${metricsToken}` },
  })
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(await answer.text())?.[1])
}

const startCounting = async (limits: object) => start({ ...limits, metrics: await createMetrics(metricsToken) })

const ask = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${headers}\r\n`
const last = ask('/things', 'x-request-id: last\r\nconnection: close\r\n')
const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))

test('requests that do not fit into a slice wait and are answered in order', async () => {
  await using service = await start({ sliceMs: 0 })
  const ids = Array.from({ length: 2100 }, (_, at) => `number-${at}`)

  const text = await service.raw(ids.map((id) => ask('/things', `x-request-id: ${id}\r\n`)).join('') + last)

  expect(new Set(statusesIn(text))).toEqual(new Set([200]))
  expect([...text.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id)).toEqual([...ids, 'last'])
})

test('requests that waited too long get 503 and are counted; /health is exempt', async () => {
  await using service = await startCounting({ sliceMs: 0, maxQueueMs: -1 })

  const text = await service.raw(ask('/things').repeat(5) + ask('/health') + last)

  expect(statusesIn(text)).toEqual([503, 503, 503, 503, 503, 200, 503])
  expect(text).toMatch(/503 [^{]*retry-after: 2\r\n/)
  expect(text).toMatch(/503 [^{]*content-type: application\/problem\+json\r\n/)
  expect(text).toMatch(/"code":"unavailable".*"request_id":"last"/)
  expect(await figure(service, 'http_requests_shed_total')).toBe(6)
  expect(service.lines()).toContainEqual(expect.objectContaining({ level: 'warn', msg: 'requests shed: overloaded' }))
})

test('the log has the number of shed requests at most every five seconds', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  await using service = await start({ sliceMs: 0, maxQueueMs: -1 })
  const counts = () => service.lines().flatMap(({ msg, count }) => (msg === 'requests shed: overloaded' ? count : []))

  await service.raw(ask('/things').repeat(5) + last)
  expect(counts()).toEqual([1])
  vi.advanceTimersByTime(5000)
  await service.raw(last)

  expect(counts()).toEqual([1, 7])
})

test('past maxQueued requests get 503 at once, and queued ones are served', async () => {
  await using service = await startCounting({ sliceMs: 0, maxQueued: 20 })

  const text = await service.raw(ask('/things').repeat(500) + last)

  const statuses = statusesIn(text)
  expect(statuses).toHaveLength(501)
  expect(statuses.slice(0, 21)).toEqual([...Array(20).fill(200), 503])
  expect(await figure(service, 'http_requests_shed_total')).toBe(statuses.filter((status) => status === 503).length)
})

test.each([
  ['with a body', `POST /things/a HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n${'x'.repeat(100_000)}`, 1],
  ['of HEAD', ask('/things').replace('GET', 'HEAD'), 0],
])('a shed request %s keeps its connection', async (_what, request, bodies) => {
  await using service = await start({ sliceMs: 0, maxQueueMs: -1 })

  const text = await service.raw(request + ask('/health', 'connection: close\r\n'))

  expect(statusesIn(text)).toEqual([503, 200])
  expect(text.match(/"code":"unavailable"/g) ?? []).toHaveLength(bodies)
})

test('new connections are accepted during a burst of requests', async () => {
  await using service = await start({ sliceMs: 0 })
  const port = Number(new URL(service.url).port)
  let answers = 0
  const burst = Array.from({ length: 300 }, () => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(ask('/things')))
    return socket.on('data', () => {
      answers += 1
      socket.write(ask('/things'))
    })
  })
  await Promise.all(burst.map((socket) => once(socket, 'data')))
  answers = 0

  await Promise.all(
    Array.from({ length: 30 }, async () => {
      const socket = net.connect(port, '127.0.0.1', () => socket.write(last))
      await once(socket, 'data')
      socket.destroy()
    }),
  )
  for (const socket of burst) socket.destroy()

  // One connection is accepted per iteration, which would otherwise serve the whole burst.
  expect(answers).toBeLessThan((30 * 300) / 3)
})

test('connections past maxConnections are counted, and logged in fewer lines', async () => {
  await using service = await startCounting({ maxConnections: 2 })
  const port = Number(new URL(service.url).port)
  const idle = await Promise.all(
    [1, 2].map(async () => {
      const socket = net.connect(port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  for (const _ of [1, 2, 3]) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
    socket.resume()
    await once(socket, 'close')
  }
  for (const socket of idle) socket.destroy()

  await expect.poll(() => figure(service, 'http_connections_dropped_total').catch(() => 0)).toBeGreaterThanOrEqual(3)
  const lines = service.lines().filter(({ msg }) => /connections dropped/.test(String(msg)))
  expect(lines[0]).toMatchObject({ level: 'warn', count: 1 })
  expect(lines.length).toBeLessThan(3)
})
