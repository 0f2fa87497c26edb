import { once } from 'node:events'
import net from 'node:net'
import { expect, test } from 'vitest'
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
