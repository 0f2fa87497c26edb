import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { isSent } from '../limits/connections.ts'
import type { EarlyListener } from '../limits/load-shedding.ts'
import type { AccessLog } from '../logging/access-log.ts'
import type { RequestMetrics } from '../monitoring/metrics.ts'
import type { TrustProxy } from '../settings/trust-proxy.ts'
import { clientAddressReader } from './client-address.ts'
import { HeadSender, type PreparedHead } from './prepared-head.ts'
import { findFramingFault } from './request-framing.ts'
import { readRequestId } from './request-id.ts'

/** A response that is known without the framework. */
export interface EarlyResponse {
  head: PreparedHead
  /** Absent: HEAD and 304. A string holds one byte per character (latin1): small ones are sent in one write. */
  body: Buffer | string | undefined
}

/**
 * Answers GET and HEAD below a prefix before the framework, which costs more than a small response itself. The response
 * must be the one that the framework's route would give; undefined leaves the request to that route.
 */
export interface EarlyResponder {
  prefix: string
  /** The route whose metrics count these responses. */
  route: string
  respond(request: IncomingMessage): EarlyResponse | undefined | Promise<EarlyResponse | undefined>
}

interface Dependencies {
  accessLog: AccessLog
  metrics: RequestMetrics | undefined
  trustProxy: TrustProxy
  stallTimeout: number
}

/**
 * The listener that tries the responder. It leaves to the framework all requests that are not plain HTTP/1.1 without a
 * body, and all while the service stops or is overloaded.
 */
export function answerEarly(
  app: FastifyInstance,
  responder: EarlyResponder,
  dependencies: Dependencies,
): EarlyListener {
  const { stallTimeout } = dependencies
  const record = recorder(responder.route, dependencies)
  const heads = new HeadSender(app.server.keepAliveTimeout)
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
  })
  const send = ({ request, response, began }: Arrival, early: EarlyResponse) => {
    const requestId = readRequestId(request.headers['x-request-id'])
    heads.write(response, early.head, requestId)
    response.end(early.body, 'latin1')
    const exchange = { request, status: early.head.status, requestId, began }
    // Nearly always: the kernel has taken all of it. Listeners and a timer would cost a tenth of a small response.
    if (isSent(response)) record(exchange)
    else {
      response.setTimeout(stallTimeout)
      onceSettled(response, (error) => record(exchange, error))
    }
  }
  return (request, response, framework) => {
    const isOurs = request.url?.startsWith(responder.prefix) && isPlain(request)
    if (!isOurs || isStopping || app.isUnderPressure()) return framework(request, response)
    const arrival = { request, response, began: performance.now() }
    const early = responder.respond(request)
    if (early && !(early instanceof Promise)) return send(arrival, early)
    const fallBack = () => framework(request, response)
    if (!early) return fallBack()
    early.then((found) => (found && !isStopping ? send(arrival, found) : fallBack()), fallBack)
  }
}

interface Arrival {
  request: IncomingMessage
  response: ServerResponse
  /** By `performance.now`. */
  began: number
}

// Not called for clients that went away before the last byte was handed to the kernel.
function onceSettled(response: ServerResponse, settle: (error?: Error) => void) {
  let isSettled = false
  const listener = (error?: Error) => {
    if (!isSettled) settle(error)
    isSettled = true
  }
  response.on('finish', listener).on('error', listener)
}

// What the framework's hooks would refuse, or answer with other headers, is theirs.
function isPlain(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request
  return (
    (method === 'GET' || method === 'HEAD') &&
    httpVersion === '1.1' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined &&
    headers.upgrade === undefined &&
    headers.expect === undefined &&
    findFramingFault(request) === undefined
  )
}

interface Exchange {
  request: IncomingMessage
  status: number
  requestId: string
  /** By `performance.now`. */
  began: number
}

// Metrics and access log as the framework has them.
function recorder(route: string, { accessLog, metrics, trustProxy }: Dependencies) {
  const clientAddress = clientAddressReader(trustProxy)
  return ({ request, status, requestId, began }: Exchange, error?: Error) => {
    const { method = '', url = '' } = request
    const ms = performance.now() - began
    metrics?.observe({ method, route, status }, ms)
    if (!error && !accessLog.isEnabled) return
    const client = clientAddress(request)
    const entry = { requestId, method, url, status, ms, client }
    if (error) accessLog.aborted(entry, error)
    else accessLog.completed(entry)
  }
}
