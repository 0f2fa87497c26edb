import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { AccessLog, Exchange, Outcome } from '../logging/access-log.ts'
import { problemOf, STATUS_CODES, toProblem, validateHeaderName, validateHeaderValue } from '../problem-details.ts'
import { framingError, requestIdOf } from './request-head.ts'

/**
 * Status line and headers, validated and joined once for many responses: Node's `writeHead` does so for each, a sixth of
 * the time of a small response (docs/adr/0021).
 */
export interface PreparedHead {
  status: number
  /** Text of the head before and after the request id. */
  start: string
  rest: string
  /** Names and values alternately, as `writeHead` takes them; the second entry is the request id. */
  headers: string[]
}

/** A streamed body. `next` is called once the kernel has taken the previous chunk, `return` if the client disconnects. */
export interface RawBody extends AsyncIterator<Buffer, void> {
  /** Other responses are waiting for memory: a client that does not read is disconnected after 10 s. */
  readonly isScarce?: boolean
}

export interface RawResponse {
  head: PreparedHead
  /** Absent: HEAD, 204 and 304. A string holds one byte per character (latin1): small ones are sent in one write. */
  body?: Buffer | string | RawBody | undefined
}

/**
 * A route that bypasses the framework, which costs more than a small response. The framework only documents it. Request
 * ids, problem details, access log, metrics, load shedding and time limits are the same as for other routes.
 */
export interface RawRoute {
  /** Path prefix such as `/static/`: the route gets all requests below it, with any method. */
  prefix: string
  url: string
  failureHeaders: Record<string, string>
  /** The response, without the header `x-request-id`. Throws the same errors as handlers of the framework. */
  respond(request: IncomingMessage): RawResponse | Promise<RawResponse>
}

interface Dependencies {
  accessLog: AccessLog
  stallTimeoutMs: number
}

type RawExchange = Exchange & { handler: RawRoute }

export class RawRouteServer {
  readonly #app: FastifyInstance
  readonly #routes: RawRoute[]
  readonly #dependencies: Dependencies
  readonly #heads: HeadSender
  readonly #pipelined = new WeakMap<Socket, number>()
  #isStopping = false

  constructor(app: FastifyInstance, routes: RawRoute[], dependencies: Dependencies) {
    this.#app = app
    this.#routes = routes
    this.#dependencies = dependencies
    this.#heads = new HeadSender(app.server.keepAliveTimeout)
    app.addHook('preClose', async () => {
      this.#isStopping = true
    })
  }

  /** Serves the requests of these routes, and leaves all others to the framework. */
  listener(framework: RequestListener): RequestListener {
    return (request, response) => {
      const handler = routeOf(this.#routes, request.url ?? '')
      if (!handler) return framework(request, response)
      const { method = '', url = '' } = request
      const exchange = {
        handler,
        request,
        response,
        method,
        url,
        requestId: requestIdOf(request),
        route: handler.url,
        began: performance.now(),
      }
      if (response.socket) this.#serve(exchange)
      else this.#serveInTurn(exchange)
    }
  }

  // A pipelined request is served once the earlier responses are sent, so that it holds no file and no memory meanwhile.
  // At most 64 wait, since Node's back-pressure counts only unsent bytes; then the connection is closed.
  #serveInTurn(exchange: RawExchange) {
    const { request, response } = exchange
    const { socket } = request
    const waiting = this.#pipelined.get(socket) ?? 0
    if (waiting === maxPipelined) return socket.destroy()
    this.#pipelined.set(socket, waiting + 1)
    response.once('socket', () => {
      this.#pipelined.set(socket, (this.#pipelined.get(socket) ?? 1) - 1)
      this.#serve(exchange)
    })
  }

  #serve(exchange: RawExchange) {
    const { request } = exchange
    try {
      const refusal = framingError(request)
      if (refusal) throw refusal
      const response = exchange.handler.respond(request)
      if (!(response instanceof Promise)) return this.#send(exchange, response)
      response.then((found) => this.#send(exchange, found)).catch((error) => this.#fail(exchange, error))
    } catch (error) {
      this.#fail(exchange, error)
    }
  }

  #send(exchange: RawExchange, { head, body }: RawResponse) {
    const { request, response, requestId } = exchange
    const { accessLog } = this.#dependencies
    const isStream = typeof body === 'object' && 'next' in body
    if (response.destroyed) {
      // The client has left: close the source of the body.
      if (isStream) void Promise.resolve(body.return?.()).catch(() => undefined)
      return accessLog.record(exchange, { isAborted: true })
    }
    const { upgrade, expect } = request.headers
    // Close, to keep framing unambiguous: Node drops bytes after a declined upgrade, and after `Expect` the client may
    // or may not send the body (RFC 9110, 10.1.1).
    if (this.#isStopping || upgrade !== undefined || expect !== undefined) response.shouldKeepAlive = false
    this.#heads.write(response, head, requestId)
    if (isStream) return void this.#stream(exchange, body)
    response.end(body, 'latin1')
    // Fast path: usually the kernel has taken all of it. Listeners and a timer would cost a tenth of a small response.
    if (isSent(response)) accessLog.record(exchange, { isAborted: false })
    else this.#recordOnceClosed(exchange)
  }

  async #stream(exchange: RawExchange, body: RawBody) {
    const { response } = exchange
    const { stallTimeoutMs } = this.#dependencies
    const outcome = this.#recordOnceClosed(exchange)
    try {
      for await (const chunk of { [Symbol.asyncIterator]: () => body }) {
        response.setTimeout(body.isScarce ? Math.min(stallTimeoutMs, 10_000) : stallTimeoutMs)
        await written(response, chunk)
      }
      response.end()
    } catch (error) {
      if (response.destroyed) return
      outcome.err = error
      response.destroy()
    }
  }

  #recordOnceClosed(exchange: RawExchange): Outcome {
    const { request, response } = exchange
    const { accessLog, stallTimeoutMs } = this.#dependencies
    const outcome: Outcome = { isAborted: false }
    response.setTimeout(stallTimeoutMs)
    response.on('error', () => undefined) // Followed by `close`.
    response.on('close', () => {
      outcome.isAborted = !response.writableFinished
      accessLog.record(exchange, outcome)
      // Shutdown began after the head had announced keep-alive, so close here.
      if (this.#isStopping) request.socket.destroySoon()
    })
    return outcome
  }

  #fail(exchange: RawExchange, error: unknown) {
    const { response, requestId } = exchange
    const log = this.#app.log.child({ request_id: requestId })
    if (response.headersSent) {
      log.error({ err: error }, 'request failed')
      return response.destroy()
    }
    const problem = toProblem(error, log)
    const { connection, ...headers } = problem.headers
    if (connection) response.shouldKeepAlive = false
    exchange.problemCode = problem.code
    const body = Buffer.from(JSON.stringify(problemOf(problem, requestId)))
    const head = prepareHead(problem.status, {
      ...exchange.handler.failureHeaders,
      ...headers,
      'content-type': 'application/problem+json',
      'content-length': String(body.length),
    })
    this.#send(exchange, { head, body })
  }
}

const maxPipelined = 64

/** Whether the kernel has taken all of a response. Node's `writableFinished` follows in a later tick. */
const isSent = ({ socket, writableEnded }: ServerResponse) =>
  writableEnded && socket !== null && socket.writableLength === 0 && !socket.destroyed

function routeOf(routes: RawRoute[], url: string): RawRoute | undefined {
  for (const route of routes) if (url.startsWith(route.prefix)) return route
  // Other spellings of the prefix: absolute form (RFC 9112, 3.2.2), or needless percent-encoding.
  if (url.startsWith('/') && !url.includes('%')) return undefined
  const [, first = ''] = /^(?:https?:\/\/[^/?#]*)?(\/[^/?#]*\/)/i.exec(url) ?? []
  try {
    const plain = decodeURIComponent(first)
    return routes.find(({ prefix }) => prefix === plain)
  } catch {
    return undefined
  }
}

/** Resolves when the kernel has taken the bytes. @throws if the connection is closed before. */
const written = (response: ServerResponse, bytes: Buffer) =>
  new Promise<void>((resolve, reject) => {
    // If the socket closes during the write, Node never calls the callback, so listen for `close`, too.
    const onClose = () => reject(new Error('the connection was closed'))
    response.once('close', onClose)
    response.write(bytes, (error) => {
      response.off('close', onClose)
      if (error) reject(error)
      else resolve()
    })
  })

/** @throws {TypeError} if a header is invalid. */
export function prepareHead(status: number, headers: Record<string, string>): PreparedHead {
  const lines = Object.entries({ 'x-content-type-options': 'nosniff', ...headers })
  for (const [name, value] of lines) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
  }
  const start = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nx-request-id: `
  const joined = lines.map(([name, value]) => `\r\n${name}: ${value}`).join('')
  // V8 represents a concatenation as a rope, which each write would traverse.
  const rest = Buffer.from(joined, 'latin1').toString('latin1')
  return { status, start, rest, headers: ['x-request-id', '', ...lines.flat()] }
}

/** Sends prepared heads. `keepAliveMs` is the server's time limit of idle connections. */
export class HeadSender {
  readonly #keepAlive: string
  #second = 0
  #date = ''

  constructor(keepAliveMs: number) {
    this.#keepAlive = keepAliveMs > 0 ? `\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}` : ''
  }

  /** As `writeHead`: the head leaves with the first bytes of the body. The request id is printable ASCII. */
  write(response: ServerResponse, head: PreparedHead, requestId: string) {
    // `_header` is private to Node: a version without it gets `writeHead`.
    const hasText = '_header' in response && response._header === null
    if (!response.shouldKeepAlive || !hasText) {
      // Safe to share: `writeHead` copies the array at once.
      head.headers[1] = requestId
      response.writeHead(head.status, head.headers)
      return
    }
    response.statusCode = head.status
    response._header =
      `${head.start}${requestId}${head.rest}` +
      `\r\nDate: ${this.#now()}\r\nConnection: keep-alive${this.#keepAlive}\r\n\r\n`
  }

  #now(): string {
    const second = Math.floor(Date.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#date = new Date(second * 1000).toUTCString()
    }
    return this.#date
  }
}
