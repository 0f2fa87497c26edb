import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { HttpError } from '../http-error.ts'
import { problemOf, STATUS_CODES } from '../problem-details.ts'
import { type CrossOriginHeaders, requestIdOf } from '../requests/request-head.ts'
import type { BodyLimits, RequestBodies } from './request-bodies.ts'

export interface ConnectionLimits extends BodyLimits {
  /** Milliseconds per event-loop iteration in which requests are served; the rest wait for the next iteration. */
  sliceMs: number
  /** Maximum milliseconds in the queue; a request that waited longer gets 503 when it is dequeued. */
  maxQueueMs: number
  /** Maximum queued requests; further ones get 503 at once. */
  maxQueued: number
  /** Maximum average lag of the event loop in milliseconds; beyond that, requests get 503. */
  maxLoopDelayMs: number
  /** Maximum open connections; further ones are closed. */
  maxConnections: number
  /** Milliseconds for the headers of a request, and for the first request of a connection. */
  headersTimeoutMs: number
  /** Milliseconds without progress in reading a response, after which the client is disconnected. */
  stallTimeoutMs: number
}

export const defaultLimits: ConnectionLimits = {
  maxConnections: 10_000,
  headersTimeoutMs: 20_000,
  stallTimeoutMs: 60_000,
  bodyIdleTimeoutMs: 10_000,
  maxBodyMemoryBytes: 64 * 1024 * 1024,
  sliceMs: 8,
  maxQueueMs: 2000,
  maxQueued: 10_000,
  maxLoopDelayMs: 1000,
}

/** Ends unread responses, and busy connections at shutdown. Node itself enforces `headersTimeoutMs`. */
export function limitConnections(app: FastifyInstance, limits: ConnectionLimits) {
  const { server } = app
  server.maxConnections = limits.maxConnections
  // Node caches the address when it is read, and cannot find it once the connection is closed, for the access log.
  server.on('connection', ({ remoteAddress }) => remoteAddress)
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    // Shutdown: close with this response, since Node closes only connections that are idle when it stops.
    if (isStopping) reply.header('connection', 'close')
    // Small responses need no timer: the kernel buffers them at once, unless earlier bytes are still queued.
    const length = Buffer.isBuffer(payload) || typeof payload === 'string' ? payload.length : payload && Infinity
    if (reply.raw.socket?.writableLength || Number(length) > smallResponse) reply.raw.setTimeout(limits.stallTimeoutMs)
    done(null, payload)
  })
  // Node emits CONNECT as an event of its own, outside the routes.
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const headers = { 'x-request-id': requestIdOf(request) }
    answerSocketError({ cause: malformedRequest(headers) }, socket)
  })
}

/** Watches the bodies of requests, and keeps the latest exchange of each connection for `answerSocketError`. */
export const trackExchanges =
  (bodies: RequestBodies, serve: RequestListener): RequestListener =>
  (request, response) => {
    const socket: Tracked = request.socket
    socket[latest] = { request, response }
    if (hasBody(request)) {
      // Fix the request id, so that a later rejection of the body has the id of the log lines.
      request.headers['x-request-id'] = requestIdOf(request)
      bodies.add(request, response)
    }
    serve(request, response)
  }

// The latest exchange, stored on its socket, since each request sets it.
const latest = Symbol('latest')
type Tracked = Socket & { [latest]?: Exchange | undefined }

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

const smallResponse = 16_384

/**
 * Answers requests that Node's HTTP parser rejected, then closes the connection. A response in progress is finished instead.
 * The response is `error.cause` if that is an HttpError. `crossOrigin` gives CORS headers if the request is known.
 */
export function answerSocketError(
  error: { code?: string; cause?: unknown },
  socket: Socket,
  crossOrigin: CrossOriginHeaders = () => ({}),
) {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
  const { request, response } = unfinishedOn(socket) ?? {}
  if (request?.complete) {
    socket.pause()
    return response?.once('close', () => socket.destroySoon())
  }
  // Truncated body: the client would take this error for the response to an earlier request, or for part of one.
  if (response && (!response.socket || response.headersSent)) return socket.destroy()
  const known = socketErrors[error.code ?? '']
  const found = known ? new HttpError(...known) : malformedRequest()
  const problem = error.cause instanceof HttpError ? error.cause : found
  const { status } = problem
  const ofRequest = request && { 'x-request-id': requestIdOf(request), ...crossOrigin(request) }
  const headers: Record<string, string> = { ...problem.headers, ...ofRequest }
  const { 'x-request-id': id = randomUUID(), ...others } = headers
  const body = JSON.stringify(problemOf(problem, id))
  const extra = Object.entries(others).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/problem+json\r\n${extra.join('')}` +
      `content-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const malformedRequest = (headers: Record<string, string> = {}) =>
  new HttpError(400, 'malformed_request', 'This is not well-formed HTTP/1.1', { headers })

const socketErrors: Record<string, readonly [number, string, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large', 'Headers too large: send fewer or shorter ones'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout', 'The request came too late: send it again'],
}

// Undefined once its request is read and its response sent.
const unfinishedOn = ({ [latest]: exchange }: Tracked): Exchange | undefined =>
  exchange?.request.complete && exchange.response.writableFinished ? undefined : exchange

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
