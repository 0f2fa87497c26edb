import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { observeCount } from './metrics.ts'
import { HttpError, problemOf } from './problem.ts'

export interface SheddingLimits {
  /** Milliseconds that the event loop may be late, on average; beyond, requests are refused until it is not. */
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
  observeCount(
    registry,
    { name: 'http_requests_shed_total', help: 'Requests refused as too much was asked at once' },
    refused.total,
  )
  observeCount(
    registry,
    { name: 'http_connections_dropped_total', help: 'Connections closed past MAX_CONNECTIONS' },
    dropped.total,
  )
  server.on('drop', dropped.add)
  app.register(underPressure, {
    maxEventLoopDelay: limits.loopDelay,
    sampleInterval: 2 * limits.loopDelay,
    // Not thrown: an answer that sheds load must cost next to nothing. It ends its connection, and all that waits there.
    pressureHandler: (request, reply) => {
      if (urgent.has(request.routeOptions.url ?? '')) return undefined
      refused.add()
      reply.code(503).headers(overloaded.headers).type('application/problem+json')
      // What is returned is sent, which the types of the plugin do not know.
      return Buffer.from(JSON.stringify(problemOf(overloaded, request.id))) as never
    },
  })
}

const urgent = new Set(['/health', '/metrics'])

const overloaded = new HttpError(
  503,
  'unavailable',
  'Too much is asked at once: try again in a moment',
  { headers: { 'retry-after': '2', connection: 'close' } },
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
