import type { IncomingMessage, ServerResponse } from 'node:http'
import { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { RequestMetrics } from '../monitoring/metrics.ts'
import { clientAddressReader, type TrustProxy } from '../requests/request-head.ts'
import { type Logger, timeField } from './logger.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who was authenticated, for the access log. */
    principal?: { username: string; token?: { name: string } }
  }
}

/** A request and its response. */
export interface Exchange {
  requestId: string
  /** The request target; its query is not logged. */
  url: string
  method: string
  /** The pattern of its route; undefined if it has none. */
  route: string | undefined
  principal?: FastifyRequest['principal'] | undefined
  request: IncomingMessage
  response: ServerResponse
  /** When the request's headers had been read, by `performance.now()`. */
  began: number
  /** The code of the problem that was answered. */
  problemCode?: string | undefined
}

/** `isAborted`: the client left before its response, or the response failed while it was sent, by `err`. */
export interface Outcome {
  isAborted: boolean
  err?: unknown
}

/** A pattern for secrets in paths, and its replacement in the log. */
export type Redaction = readonly [secrets: RegExp, shown: string]

interface Options {
  /** Default: none; only clients' own addresses are logged. */
  trustProxy?: TrustProxy
  metrics?: RequestMetrics | undefined
  redaction?: Redaction | undefined
}

/**
 * Records each exchange once, when its response has ended: in the metrics if it completed, and as one line of the log,
 * level info if it completed, warn if not. Health checks are not logged. The framework logs requests only through it.
 */
export class AccessLog extends LogController {
  readonly #log: Logger
  readonly #metrics: RequestMetrics | undefined
  readonly #redaction: Redaction | undefined
  readonly #name: string
  readonly #clientAddress: (request: IncomingMessage) => string
  readonly #logsCompleted: boolean

  constructor(log: Logger, { trustProxy = false, metrics, redaction }: Options = {}) {
    super({ requestIdLogLabel: 'request_id' })
    this.#log = log
    this.#metrics = metrics
    this.#redaction = redaction
    this.#clientAddress = clientAddressReader(trustProxy)
    this.#name = JSON.stringify(log.bindings().name ?? '')
    this.#logsCompleted = log.isLevelEnabled('info')
  }

  record(exchange: Exchange, { isAborted, err }: Outcome) {
    const { requestId, method, url, route, principal, request, response } = exchange
    const ms = performance.now() - exchange.began
    const { statusCode: status } = response
    if (!isAborted) this.#metrics?.observe({ method, route, status }, ms, exchange.problemCode)
    if (route === '/health' || !(isAborted || this.#logsCompleted)) return
    const end = url.indexOf('?')
    const target = end < 0 ? url : url.slice(0, end)
    const path = this.#redaction ? target.replace(...this.#redaction) : target
    const client = this.#clientAddress(request)
    if (isAborted) {
      const sent = response.headersSent && { status }
      const user = principal && { user: principal.username, token_name: principal.token?.name }
      const fields = { request_id: requestId, method, path, ...sent, client, ...user, err }
      this.#log.warn(fields, 'request aborted')
      return
    }
    const user = principal ? `,"user":${JSON.stringify(principal.username)}` : ''
    const token = principal?.token ? `,"token_name":${JSON.stringify(principal.token.name)}` : ''
    // Bypasses pino, whose line takes a sixth of the time of a small response.
    this.#log.output.write(
      `{"level":"info"${timeField()},"name":${this.#name},"request_id":${JSON.stringify(requestId)}` +
        `,"method":"${method}","path":${JSON.stringify(path)},"status":${status}` +
        `,"ms":${Math.round(ms * 10) / 10},"client":${JSON.stringify(client)}${user}${token}` +
        ',"msg":"request completed"}\n',
      { isBatched: true },
    )
  }

  // Also for URLs that the framework refuses before any hook. Not its `requestCompleted` or `onRequestAbort`: they miss
  // clients that leave, since a request without a body emits no events (see `parserOptions`). Not its `request.ip`,
  // which is the proxy's for such URLs.
  override incomingRequest(request: FastifyRequest, reply: FastifyReply) {
    const { raw: response } = reply
    const began = performance.now()
    response.once('close', () => {
      const { id: requestId, method, url, raw, principal, routeOptions } = request
      const exchange = { requestId, method, url, route: routeOptions.url, principal, request: raw }
      this.record(
        { ...exchange, response, began, problemCode: reply.problemCode },
        { isAborted: !response.writableFinished },
      )
    })
  }

  override requestCompleted() {}

  override routeNotFound() {}

  // Empty: the error handler logs errors.
  override defaultErrorLog() {}
}

/**
 * The logger for the framework. The child logger of a request is created at its first written line: most requests log
 * only in the access log, and plugins log at disabled levels.
 */
export const frameworkLogger = (log: Logger): FastifyBaseLogger => lazyLogger(log, () => log)

function lazyLogger(root: Logger, create: () => FastifyBaseLogger): FastifyBaseLogger {
  let created: FastifyBaseLogger | undefined
  const logger = () => {
    created ??= create()
    return created
  }
  const child = (...args: Parameters<FastifyBaseLogger['child']>) => lazyLogger(root, () => logger().child(...args))
  return new Proxy<FastifyBaseLogger>(root, {
    get(_target, key) {
      if (key === 'child') return child
      if (typeof key === 'string' && levels.has(key) && !root.isLevelEnabled(key)) return ignore
      const value: unknown = Reflect.get(logger(), key)
      return typeof value === 'function' ? value.bind(logger()) : value
    },
  })
}

const levels = new Set(['fatal', 'error', 'warn', 'info', 'debug', 'trace'])
const ignore = () => undefined
