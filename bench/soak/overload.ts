import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { at } from './latency.ts'
import type { Service } from './services.ts'

const connections = 9000

/** The milliseconds until each answer, by its status. */
type Tally = Record<string, number[]>

/**
 * Sends requests at a rate that does not wait for answers, each on a connection that is free, and counts what comes
 * back; without a rate 200 connections send the next when the last was answered: that is what the machine serves.
 */
async function press(service: Service, seconds: number, rate?: number): Promise<Tally> {
  const tally: Tally = {}
  const request = `GET /api/auth/me HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${service.token}\r\n\r\n`
  const sentOn = new Map<Socket, number>()
  const free: Socket[] = []
  let hasAsked = false
  let isOver = false
  const count = (status: string, since: number) => {
    tally[status] ??= []
    tally[status].push(performance.now() - since)
  }
  const ask = (socket: Socket) => {
    sentOn.set(socket, performance.now())
    socket.write(request)
  }
  const join = () => {
    const socket = connect(service.port, '127.0.0.1')
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      const since = sentOn.get(socket)
      if (since !== undefined) count(isOver ? 'unanswered' : 'closed', since)
    })
    // Answers are small: each comes whole.
    socket.on('data', (chunk) => {
      count(chunk.toString('latin1', 9, 12), sentOn.get(socket) ?? 0)
      sentOn.delete(socket)
      if (rate !== undefined) free.push(socket)
      else if (!hasAsked) ask(socket)
    })
    return socket
  }
  const open = new Set<Socket>()
  if (rate === undefined) for (let at = 0; at < 200; at += 1) ask(join())
  const begun = performance.now()
  let asked = 0
  while (performance.now() - begun < seconds * 1000) {
    const due = rate === undefined ? 0 : ((performance.now() - begun) / 1000) * rate
    for (; asked < due; asked += 1) {
      const socket = free.pop() ?? (open.size < connections ? join() : undefined)
      if (socket?.writable || socket?.connecting) ask(socket)
    }
    await wait(2)
  }
  hasAsked = true
  for (let left = 100; left > 0 && sentOn.size > 0; left -= 1) await wait(100)
  isOver = true
  for (const socket of open) socket.destroy()
  await wait(100)
  return tally
}

/**
 * Asks three times what the service can do: it must go on answering in time, with refusals where it must, and be as
 * before when that is over.
 */
export async function overload(service: Service, seconds: number): Promise<string[]> {
  const usual = await press(service, 5)
  const served = (usual['200']?.length ?? 0) / 5
  const health: number[] = []
  const probe = new Worker(new URL('probe.ts', import.meta.url), { workerData: service.port })
  probe.on('message', (ms) => health.push(ms))
  const pressed = await press(service, seconds, 3 * served)
  await probe.terminate()
  await wait(3000)
  const after = await press(service, 5)

  const rowOf = (answers: number[] = []) => ({
    answers: answers.length,
    p50: at(answers, 0.5),
    p90: at(answers, 0.9),
    p99: at(answers, 0.99),
  })
  const rowsOf = (when: string, tally: Tally) =>
    Object.entries(tally).map(([status, answers]) => ({ when, status, ...rowOf(answers) }))
  console.log(`\n${service.name}: it serves ${Math.round(served)} requests a second; three times as many were asked`)
  console.table([
    ...rowsOf('before', usual),
    ...rowsOf('three times', pressed),
    { when: 'three times', status: '/health', ...rowOf(health) },
    ...rowsOf('after', after),
  ])
  const strange = Object.keys(pressed).filter((status) => !['200', '503', 'closed'].includes(status))
  return [
    ...strange.map((status) => `${service.name}: ${pressed[status]?.length} answers were ${status}`),
    // All but those that knock while thousands of connections are opened: Node accepts them one by one.
    ...(health.length === 0 || at(health, 0.75) > 1000 ? [`${service.name}: /health took ${at(health, 0.75)} ms`] : []),
    ...(at(pressed['503'] ?? [], 0.9) > 3000 ? [`${service.name}: refusals come late`] : []),
    ...(Object.keys(after).join() === '200' ? [] : [`${service.name}: it did not recover`]),
    ...(at(after['200'] ?? [], 0.99) > 3 * at(usual['200'] ?? [], 0.99) ? [`${service.name}: it stays slow`] : []),
  ]
}
