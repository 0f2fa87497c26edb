import type { IncomingMessage, ServerResponse } from 'node:http'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { registerCounter } from '../metrics.ts'
import { HttpError, problemOf } from '../problem-details.ts'
import { readRequestId } from '../request-id.ts'
import { limitIterationWork } from './admission-queue.ts'

export interface SheddingLimits {
  /** Milliseconds that one turn of the event loop spends on requests before the rest of them waits for the next. */
  turn: number
  /** Milliseconds that a request may wait so; if it waited longer it is refused. */
  longestWait: number
  /** Requests that may wait so at once. */
  mostWaiting: number
  /** Milliseconds that the event loop may be late for any reason, on average; beyond, requests are refused. */
  loopDelay: number
}

/**
 * Refuses requests with a 503 before waiting makes every answer late; machines that ask how the service is are always
 * answered. What is refused, and connections that are closed past their bound, are counted, and told now and then.
 */
export function shedLoad(app: FastifyInstance, limits: SheddingLimits, registry: Registry) {
  const { server, log } = app
  const refused = countTold((count) =>
    log.warn({ count }, 'requests refused: too much is asked at once'),
  )
  const dropped = countTold((count) =>
    log.warn({ count }, 'connections dropped: MAX_CONNECTIONS are open'),
  )
  registerCounter(
    registry,
    { name: 'http_requests_shed_total', help: 'Requests refused as too much was asked at once' },
    refused.total,
  )
  registerCounter(
    registry,
    { name: 'http_connections_dropped_total', help: 'Connections closed past MAX_CONNECTIONS' },
    dropped.total,
  )
  server.on('drop', dropped.add)
  // Before all else that looks at a request: an answer that sheds load must cost next to nothing.
  const refuse = (request: IncomingMessage, response: ServerResponse) => {
    refused.add()
    const id = readRequestId(request.headers['x-request-id'])
    const body = JSON.stringify(problemOf(overloaded, id))
    response.writeHead(503, {
      ...overloaded.headers,
      'content-type': 'application/problem+json',
      'content-length': Buffer.byteLength(body),
      'x-request-id': id,
      'x-content-type-options': 'nosniff',
      // A connection stays, since to accept a new one is dearer than to refuse again; but not when we stop.
      ...(server.listening ? {} : { connection: 'close' }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }
  limitIterationWork(server, limits, {
    isUrgent: (url) => urgent.has(url.split('?', 1)[0] ?? ''),
    refuse,
  })
  app.register(underPressure, {
    maxEventLoopDelay: limits.loopDelay,
    sampleInterval: 2 * limits.loopDelay,
    pressureHandler: (request, reply) => {
      if (urgent.has(request.routeOptions.url ?? '')) return undefined
      reply.hijack()
      refuse(request.raw, reply.raw)
      // What is returned would be sent, which is done already.
      return new Promise(() => undefined) as never
    },
  })
}

const urgent = new Set(['/health', '/metrics'])

const overloaded = new HttpError(
  503,
  'unavailable',
  'Too much is asked at once: try again in a moment',
  { headers: { 'retry-after': '2' } },
)

/** Counts what may come in crowds: told at once when it begins, then every five seconds how many there were. */
function countTold(tell: (count: number) => void) {
  let total = 0
  let untold = 0
  let timer: NodeJS.Timeout | undefined
  const tellThese = () => {
    timer = untold > 0 ? setTimeout(tellThese, 5000).unref() : undefined
    if (untold > 0) tell(untold)
    untold = 0
  }
  return {
    total: () => total,
    add: () => {
      total += 1
      untold += 1
      if (!timer) tellThese()
    },
  }
}
