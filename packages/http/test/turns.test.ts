import { once } from 'node:events'
import net from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createMetrics } from '../src/index.ts'
import { type Started, start } from './start.ts'

const metrics = { token: 'metrics-token-1234' }

const figure = async (service: Started, name: string) => {
  const answer = await fetch(`${service.url}/metrics`, {
    headers: { authorization: `Bearer ${metrics.token}` },
  })
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(await answer.text())?.[1])
}

const startCounting = (connections: object) =>
  start({ connections, metrics: { ...metrics, registry: createMetrics() } })

const ask = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${headers}\r\n`
const last = ask('/things', 'x-request-id: last\r\nconnection: close\r\n')

test('what does not fit into a turn waits, and is answered in its order', async () => {
  await using service = await start({ connections: { turn: 0, longestWait: 60_000 } })
  const ids = Array.from({ length: 50 }, (_, at) => `number-${at}`)

  const text = await service.raw(
    ids.map((id) => ask('/things', `x-request-id: ${id}\r\n`)).join('') + last,
  )

  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(51)
  expect([...text.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id)).toEqual([...ids, 'last'])
})

test('while the first in the queue has waited too long, those that come are refused and counted', async () => {
  await using service = await startCounting({ turn: 0, longestWait: -1 })

  const text = await service.raw(ask('/things').repeat(5) + ask('/health') + last)

  // The first waits, the next come too late, and machines are always answered.
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    ...['200', '503', '503', '503', '503'],
    ...['200', '503'],
  ])
  expect(text).toMatch(/503 [^{]*retry-after: 2\r\n/)
  expect(text).toMatch(/503 [^{]*content-type: application\/problem\+json\r\n/)
  expect(text).toMatch(/"code":"unavailable".*"request_id":"last"/)
  expect(await figure(service, 'http_requests_shed_total')).toBe(5)
  expect(service.lines()).toContainEqual(
    expect.objectContaining({ level: 40, msg: 'requests refused: too much is asked at once' }),
  )
})

test('who is refused keeps the connection, and the next request on it is served', async () => {
  await using service = await start({ connections: { turn: 0, longestWait: -1 } })
  const upload = `POST /things/a HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n${'x'.repeat(100_000)}`
  const socket = net.connect(Number(new URL(service.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })

  socket.write(ask('/things') + upload)
  await expect.poll(() => text).toMatch(/200 .*503 /s)
  socket.write(last)
  await once(socket, 'close')

  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    '200',
    '503',
    '200',
  ])
})

test('connections past their bound are counted, and told in one line', async () => {
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

  await expect
    .poll(() => figure(service, 'http_connections_dropped_total').catch(() => 0))
    .toBeGreaterThanOrEqual(3)
  expect(service.lines().filter(({ msg }) => /connections dropped/.test(String(msg)))).toEqual([
    expect.objectContaining({ level: 40, count: 1 }),
  ])
})
