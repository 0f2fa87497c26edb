import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { unavailable } from '../http-error.ts'
import { type Metrics, registerCounters } from '../monitoring/metrics.ts'
import { problemOf } from '../problem-details.ts'
import type { RawRouteServer } from '../requests/raw-route.ts'
import { type CrossOriginHeaders, isPreflight, requestIdOf } from '../requests/request-head.ts'
import { type ConnectionLimits, trackExchanges } from './connections.ts'
import type { RequestBodies } from './request-bodies.ts'

interface Dependencies {
  metrics: Metrics | undefined
  rawRoute: RawRouteServer | undefined
  crossOrigin: CrossOriginHeaders
  bodies: RequestBodies
}

/**
 * Refuses requests with 503 before queueing makes every response late; /health, /metrics and CORS preflights are exempt.
 * Shed requests and connections dropped past `maxConnections` are counted and logged.
 */
export function shedLoad(
  app: FastifyInstance,
  limits: ConnectionLimits,
  { metrics, rawRoute, crossOrigin, bodies }: Dependencies,
) {
  const { server, log } = app
  const shed = createLoggedCount((count) => log.warn({ count }, 'requests shed: overloaded'))
  const dropped = createLoggedCount((count) => log.warn({ count }, 'connections dropped: MAX_CONNECTIONS reached'))
  registerCounters(metrics, {
    http_requests_shed_total: ['Requests refused with 503 under overload', shed.total],
    http_connections_dropped_total: ['Connections closed past MAX_CONNECTIONS', dropped.total],
  })
  server.on('drop', dropped.add)
  const [framework] = server.listeners('request') as RequestListener[] // The only listener yet.
  if (!framework) throw new Error('the framework has not registered its request listener')
  server.off('request', framework)
  const queue = new AdmissionQueue(server, limits, {
    serve: rawRoute?.listener(framework) ?? framework,
    refuse: (request, response) => {
      shed.add()
      // Keep-alive while listening: accepting a new connection costs more than another 503 on this one.
      const connection = server.listening ? {} : { connection: 'close' }
      sendOverloaded(request, response, { ...connection, ...crossOrigin(request) })
    },
    loop: watchLoopDelay(app, limits.maxLoopDelayMs),
  })
  server.on('request', trackExchanges(bodies, queue.admit))
}

/** Whether the event loop lagged more than `maxMs` on average in the last sample. Sampling starts with the server. */
function watchLoopDelay(app: FastifyInstance, maxMs: number): { readonly isLate: boolean } {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  const loop = { isLate: false }
  let timer: NodeJS.Timeout | undefined
  app.server.once('listening', () => {
    delays.enable()
    timer = setInterval(() => {
      // The mean is NaN if the loop was blocked for the whole sample: late.
      loop.isLate = !(delays.mean / 1e6 - resolutionMs <= maxMs)
      delays.reset()
    }, 2 * maxMs).unref()
  })
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delays.disable()
  })
  return loop
}

const resolutionMs = 10
const isExempt = (request: IncomingMessage) =>
  /^\/(?:health|metrics)(?:\?|$)/.test(request.url ?? '') || isPreflight(request)

// Shedding must cost next to nothing, so this bypasses the framework.
function sendOverloaded(request: IncomingMessage, response: ServerResponse, headers: Record<string, string>) {
  const id = requestIdOf(request)
  const body = JSON.stringify(problemOf(overloaded, id))
  response.writeHead(503, {
    ...headers,
    ...overloaded.headers,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': id,
    'x-content-type-options': 'nosniff',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

const overloaded = unavailable(2, 'Service overloaded: try again in a moment')

/** A counter whose value is logged at an event, at most every five seconds. */
function createLoggedCount(logCount: (count: number) => void) {
  let total = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    total: () => total,
    add: () => {
      total += 1
      if (performance.now() < loggedAt + 5000) return
      loggedAt = performance.now()
      logCount(total)
    },
  }
}

interface Handlers {
  serve: RequestListener
  refuse: RequestListener
  /** While late, requests get 503 without queueing. */
  loop: { readonly isLate: boolean }
}

/**
 * Serves requests in slices, first come first served. Per event-loop iteration Node reads every ready connection but
 * accepts one (libuv PR 3696): if one iteration served a thousand requests, the next accept would wait for all of them.
 * After an accept the slice is 1/32, so that bursts of new connections are accepted quickly; at least one request is
 * served per iteration.
 */
class AdmissionQueue {
  readonly #limits: ConnectionLimits
  readonly #handlers: Handlers
  readonly #queue: { request: IncomingMessage; response: ServerResponse; since: number }[] = []
  #isSliceOpen = false
  #hasAccepted = false
  #sliceEnd = 0

  constructor(server: Server, limits: ConnectionLimits, handlers: Handlers) {
    this.#limits = limits
    this.#handlers = handlers
    server.on('connection', () => {
      this.#hasAccepted = true
    })
  }

  readonly admit: RequestListener = (request, response) => {
    const { length: queued } = this.#queue
    if (this.#handlers.loop.isLate && !isExempt(request)) return this.#handlers.refuse(request, response)
    const now = performance.now()
    if (!this.#isSliceOpen) this.#openSlice(now)
    if ((queued === 0 && now < this.#sliceEnd) || isExempt(request)) return this.#handlers.serve(request, response)
    // Bounded: Node's back-pressure counts only unsent bytes, so one connection can pipeline requests without end.
    if (queued >= this.#limits.maxQueued) return this.#handlers.refuse(request, response)
    this.#queue.push({ request, response, since: now })
  }

  #openSlice(now: number) {
    this.#isSliceOpen = true
    this.#sliceEnd = now + this.#limits.sliceMs / (this.#hasAccepted ? 32 : 1)
    this.#hasAccepted = false
    setImmediate(() => {
      this.#isSliceOpen = false
      if (this.#queue.length === 0) return
      this.#openSlice(performance.now())
      this.#serveNext()
    })
  }

  #serveNext() {
    const next = this.#queue.shift()
    if (!next) return
    const { request, response, since } = next
    const now = performance.now()
    if (now - since > this.#limits.maxQueueMs) this.#handlers.refuse(request, response)
    else if (!response.destroyed) this.#handlers.serve(request, response)
    // Let promises and callbacks of this request run before the next one.
    if (now < this.#sliceEnd) queueMicrotask(() => process.nextTick(() => this.#serveNext()))
  }
}
