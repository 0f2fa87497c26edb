import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Service } from './services.ts'

const sockets = 200

interface Tally {
  statuses: Record<string, number>
  latencies: number[]
}

/**
 * Sends requests at a rate that does not wait for answers, on 200 connections, and counts what comes back. Without a
 * rate each connection sends the next request when the last was answered: that is what the machine serves.
 */
async function press(service: Service, seconds: number, rate?: number): Promise<Tally> {
  const tally: Tally = { statuses: {}, latencies: [] }
  const request = `GET /api/auth/me HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${service.token}\r\n\r\n`
  const count = (status: string, since: number) => {
    tally.statuses[status] = (tally.statuses[status] ?? 0) + 1
    tally.latencies.push(performance.now() - since)
  }
  let isOver = false
  const open = Array.from({ length: sockets }, () => {
    let socket: Socket | undefined
    const sent: number[] = []
    const join = () => {
      const joined = connect(service.port, '127.0.0.1')
      joined.on('error', () => undefined)
      joined.on('close', () => {
        if (socket === joined) socket = undefined
        for (const since of sent.splice(0)) count('closed', since)
      })
      joined.on('data', (chunk) => {
        for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
          count(status, sent.shift() ?? performance.now())
          if (rate === undefined && !isOver) ask()
        }
      })
      return joined
    }
    const ask = () => {
      socket ??= join()
      sent.push(performance.now())
      socket.write(request)
    }
    return { sent, ask, end: () => socket?.destroy() }
  })
  if (rate === undefined) for (const { ask } of open) ask()
  const begun = performance.now()
  let asked = 0
  while (performance.now() - begun < seconds * 1000) {
    const due = rate === undefined ? 0 : ((performance.now() - begun) / 1000) * rate
    for (; asked < due; asked += 1) open[asked % sockets]?.ask()
    await wait(5)
  }
  isOver = true
  for (let left = 100; left > 0 && open.some(({ sent }) => sent.length > 0); left -= 1)
    await wait(100)
  const lost = open.reduce((sum, { sent }) => sum + sent.length, 0)
  if (lost > 0) tally.statuses.unanswered = lost
  for (const { end } of open) end()
  return tally
}

/** Asks three times what the service can do: it must go on answering, and be as before when that is over. */
export async function overload(service: Service, seconds: number): Promise<string[]> {
  const usual = await press(service, 5)
  const served = (usual.statuses['200'] ?? 0) / 5
  const health: number[] = []
  const asking = setInterval(async () => {
    const since = performance.now()
    const answer = await fetch(`http://127.0.0.1:${service.port}/health`)
    health.push(answer.ok ? performance.now() - since : Number.POSITIVE_INFINITY)
  }, 500)
  const pressed = await press(service, seconds, 3 * served)
  clearInterval(asking)
  await wait(3000)
  const after = await press(service, 5)

  const row = ({ statuses, latencies }: Tally) => ({
    ...statuses,
    p50: at(latencies, 0.5),
    p99: at(latencies, 0.99),
  })
  console.log(
    `\n${service.name}: it serves ${Math.round(served)} requests a second; three times as many were asked`,
  )
  console.table({ before: row(usual), 'three times': row(pressed), after: row(after) })
  console.log(`/health meanwhile: ${health.length} answers, the slowest after ${at(health, 1)} ms`)
  const strange = [...Object.keys(pressed.statuses)].filter(
    (status) => !['200', '503', 'closed'].includes(status),
  )
  return [
    ...strange.map(
      (status) => `${service.name}: ${pressed.statuses[status]} answers were ${status}`,
    ),
    ...(health.length === 0 || at(health, 1) > 10_000
      ? [`${service.name}: /health did not answer`]
      : []),
    ...(Object.keys(after.statuses).join() === '200'
      ? []
      : [`${service.name}: it did not recover`]),
    ...(at(after.latencies, 0.99) > 3 * at(usual.latencies, 0.99)
      ? [`${service.name}: it stays slow`]
      : []),
  ]
}

/** The milliseconds within which this share was answered. */
export const at = (values: number[], share: number) =>
  Math.round((values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0) * 10) /
  10
