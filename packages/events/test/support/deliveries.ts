import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLogger } from '@domains-and-files/http'
import { appendEvents, EventLog, type EventSource } from '../../src/outbox.ts'
import { WebhookDispatcher } from '../../src/webhooks/dispatcher.ts'
import { WebhookStore } from '../../src/webhooks/webhook-store.ts'
import type { TestDatabase } from './databases.ts'

interface Received {
  path: string
  id: string
  body: {
    id: string
    type: string
    data: { domain?: string; number?: number } | null
    truncated?: true
  }
  headers: Record<string, string>
  text: string
}

/** A receiver whose answers a test chooses by path. */
export async function openReceiver(answer: (received: Received) => number | 'hang') {
  const received: Received[] = []
  const arrived = new EventTarget()
  const read = async (request: IncomingMessage) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const id = headers['webhook-id'] ?? ''
    return { path: request.url ?? '', id, headers, text, body: JSON.parse(text) }
  }
  const server = createServer(async (request, response) => {
    const each = await read(request)
    received.push(each)
    arrived.dispatchEvent(new Event('arrived'))
    const status = answer(each)
    if (status === 'hang') return
    response.writeHead(status, { location: '/redirected' }).end(`answer of ${each.path}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // It listens on a port.
  return {
    received,
    url: (path: string) => `http://127.0.0.1:${port}${path}`,
    /** Resolves when so many have arrived. */
    count: async (wanted: number) => {
      while (received.length < wanted) await once(arrived, 'arrived')
      return received
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const source: EventSource = {
  types: ['zone.changed', 'change.refused'],
  scope: 'domains',
  describe: ({ data }, { domains }) => {
    const about = data as { domain: string } // Appended below.
    return domains && !domains.includes(about.domain) ? undefined : about
  },
  example: { type: 'zone.changed', data: { at: '', by: null, request_id: null } },
}

export const append = (db: TestDatabase, number: number, { domain = 'example.com', type = 'zone.changed' } = {}) =>
  db.sql.transaction((transaction) => appendEvents(transaction, [{ type, data: { domain, number } }]))

const logger = createLogger({ name: 'test', level: 'silent' })

/** One process; `timers`: the time limits of its tries in milliseconds; `endTimeLimits` ends the time limits of all its tries. */
export function openProcess(sql: TestDatabase['sql'], stack: AsyncDisposableStack, { isIdle = false } = {}) {
  const log = new EventLog(sql, source)
  const store = new WebhookStore(sql)
  const timers = new Map<() => void, number>()
  const setTimer = (callback: () => void, milliseconds: number) => {
    timers.set(callback, milliseconds)
    return { cancel: () => timers.delete(callback) }
  }
  const clock = { now: Date.now, setTimer }
  const networks = ['127.0.0.0/8']
  const parts = { http: true, networks, store, log, clock, logger, pollMs: 20 }
  const dispatcher = new WebhookDispatcher(parts)
  if (!isIdle) dispatcher.start()
  // As a timer does: what was scheduled by process.nextTick then comes before promises.
  const endTimeLimits = () =>
    setImmediate(() => {
      for (const end of timers.keys()) end()
    })
  const close = () => {
    endTimeLimits()
    return dispatcher.close()
  }
  stack.defer(close)
  return { log, store, dispatcher, timers, endTimeLimits, close }
}
