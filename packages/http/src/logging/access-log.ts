import type { IncomingMessage, ServerResponse } from 'node:http'
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { RequestMetrics } from '../monitoring/metrics.ts'
import { clientAddressReader, type TrustProxy } from '../requests/request-head.ts'
import { type Logger, timeField } from './logger.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who was authenticated, for the access log. */
    principal?: { username: string; token?: { name: string } }
  }
}

export interface Exchange {
  requestId: string
  url: string
  method: string
  /** The pattern of its route, if it has one. */
  route: string | undefined
  principal?: FastifyRequest['principal'] | undefined
  request: IncomingMessage
  response: ServerResponse
  /** When the request's headers had been read, by `performance.now()`. */
  began: number
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
  readonly #options: Options
  readonly #name: string
  readonly #clientAddress: (request: IncomingMessage) => string
  readonly #logsCompleted: boolean

  constructor(log: Logger, options: Options = {}) {
    super({ requestIdLogLabel: 'request_id' })
    this.#log = log
    this.#options = options
    this.#clientAddress = clientAddressReader(options.trustProxy ?? false)
    this.#name = JSON.stringify(log.bindings().name ?? '')
    this.#logsCompleted = log.isLevelEnabled('info')
  }

  record(exchange: Exchange, { isAborted, err }: Outcome) {
    const { requestId, method, url, route, principal, request, response } = exchange
    const { metrics, redaction } = this.#options
    const ms = performance.now() - exchange.began
    const { statusCode: status } = response
    if (!isAborted) metrics?.observe({ method, route, status }, ms, exchange.problemCode)
    if (route === '/health' || !(isAborted || this.#logsCompleted)) return
    const end = url.indexOf('?')
    const target = end < 0 ? url : url.slice(0, end)
    const path = redaction ? target.replace(...redaction) : target
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

  // Also for URLs that the framework refuses before any hook, for which its `request.ip` is the proxy's. Its
  // `requestCompleted` and `onRequestAbort` miss clients that leave: a request without a body emits no events (see
  // `parserOptions`).
  override incomingRequest(request: FastifyRequest, reply: FastifyReply) {
    const { raw: response } = reply
    const began = performance.now()
    response.once('close', () => {
      const { id: requestId, method, url, raw, principal, routeOptions } = request
      const exchange = { requestId, method, url, route: routeOptions.url, principal, request: raw }
      const isAborted = !response.writableFinished
      this.record({ ...exchange, response, began, problemCode: reply.problemCode }, { isAborted })
    })
  }

  override requestCompleted() {}
}
