import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { at } from './latency.ts'
import type { Service } from './services.ts'

const most = 10_000
// The limit of the service: so many more are taken than idle ones, for those who ask meanwhile.
const spare = 50
const mostAtOnce = 200

/** Holds as many connections open as a service takes by default, silent after one request: others must not notice. */
export async function idleConnections(service: Service): Promise<string[]> {
  const before = await observe(service)
  const sockets: Socket[] = []
  const count = most - spare
  while (sockets.length < count) {
    const joining = Array.from({ length: Math.min(mostAtOnce, count - sockets.length) }, () => join(service.port))
    const joined = await Promise.all(joining)
    sockets.push(...joined.filter((socket) => socket !== undefined))
    if (joined.includes(undefined)) break
  }
  const meanwhile = await observe(service)
  const held = sockets.filter(({ readyState }) => readyState === 'open').length
  for (const socket of sockets) socket.destroy()
  await wait(2000)
  const after = await observe(service)

  console.log(`\n${service.name}: ${held} connections that are open, and ask nothing`)
  console.table({ before, meanwhile, after })
  return [
    ...(held < count ? [`${service.name}: it held ${held} of ${count} connections`] : []),
    ...(meanwhile.rss - before.rss > 400 ? [`${service.name}: they take too much memory`] : []),
    ...(meanwhile.p99 > 500 ? [`${service.name}: others wait for idle connections`] : []),
    ...(after.fds > before.fds + 20 ? [`${service.name}: it keeps descriptors of them`] : []),
  ]
}

/** A connection that has asked once, as a kept one has; nothing where the service, or this process, takes no more. */
async function join(port: number): Promise<Socket | undefined> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const ended = once(socket, 'close').then(() => undefined)
  socket.write('GET /health HTTP/1.1\r\nhost: a\r\n\r\n')
  const answered = once(socket, 'data').then(
    () => socket,
    () => undefined,
  )
  return Promise.race([answered, ended])
}

/** The milliseconds of five hundred requests, a few at a time, and what the process takes then. */
async function observe(service: Service) {
  const latencies: number[] = []
  const ask = async () => {
    for (let left = 125; left > 0; left -= 1) {
      const since = performance.now()
      const answer = await fetch(`http://127.0.0.1:${service.port}/api/auth/me`, {
        headers: { authorization: `Bearer ${service.token}` },
      })
      await answer.arrayBuffer()
      latencies.push(answer.ok ? performance.now() - since : Number.POSITIVE_INFINITY)
    }
  }
  await Promise.all([ask(), ask(), ask(), ask()])
  return { ...service.measure(), p50: at(latencies, 0.5), p99: at(latencies, 0.99) }
}
