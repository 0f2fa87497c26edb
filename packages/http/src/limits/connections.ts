import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { STATUS_CODES } from '../node-http.ts'
import { HttpError, problemOf } from '../problem-details.ts'
import type { SheddingLimits } from './load-shedding.ts'

/** What clients may take of a service by being slow or many. */
export interface ConnectionLimits extends SheddingLimits {
  /** Connections at once; one more is closed as it comes. */
  maxConnections: number
  /** Milliseconds for the headers of a request; a connection that never asks anything has as long. */
  headersTimeout: number
  /** Milliseconds in which a body must bring 64 KiB or its end, and an answer must be read on. */
  stallTimeout: number
}

export const defaultLimits: ConnectionLimits = {
  maxConnections: 10_000,
  headersTimeout: 20_000,
  stallTimeout: 60_000,
  turn: 8,
  longestWait: 500,
  mostWaiting: 10_000,
  loopDelay: 500,
}

/**
 * Ends what stands still: bodies that trickle, answers that nobody reads (headers are Node's own to time).
 */
export function limitConnections(app: FastifyInstance, limits: ConnectionLimits) {
  const { server } = app
  server.maxConnections = limits.maxConnections
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (mayStall(reply.raw, payload)) reply.raw.setTimeout(limits.stallTimeout)
    done(null, payload)
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    remember({ request, response })
    if (hasBody(request)) watchBody(server, { request, response }, limits.stallTimeout)
  })
}

// What is small goes to the system at once, unless there is more before it that nobody reads.
const mayStall = ({ socket }: ServerResponse, payload: unknown) =>
  (socket?.writableLength ?? 0) > 0 ||
  (Buffer.isBuffer(payload) || typeof payload === 'string'
    ? payload.length > smallAnswer
    : Boolean(payload))

const smallAnswer = 16_384

/**
 * Answers what Node's HTTP parser refused before there was a request. Never a second time, nor into another answer:
 * where one is on its way it ends first, and then the connection.
 */
export function answerSocketError(error: Error & { code?: string }, socket: Socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
  const open = openOn(socket)
  const last = open.at(-1)
  if (last?.request.complete) {
    socket.pause()
    return last.response.once('close', () => socket.destroySoon())
  }
  // A body broke off. Who was answered already, or waits for an earlier answer, would take ours for that one.
  if (last && (open.length > 1 || last.response.headersSent)) return socket.destroy()
  const [status, code, detail] =
    socketErrors[error.code ?? ''] ??
    ([400, 'malformed_request', 'This is not well-formed HTTP/1.1'] as const)
  const id = randomUUID()
  const body = JSON.stringify(problemOf(new HttpError(status, code, detail), id))
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/problem+json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${id}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const socketErrors: Record<string, readonly [number, string, string]> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'headers_too_large',
    'The request headers are too large: send fewer or shorter ones',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    408,
    'request_timeout',
    'The request did not arrive in time: send it again',
  ],
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

// Kept at the socket itself: there is one look at it for each request.
const exchanges = Symbol('exchanges')
type Remembering = Socket & { [exchanges]?: Exchange[] }

function remember(exchange: Exchange) {
  const socket: Remembering = exchange.request.socket
  const known = socket[exchanges]
  // Mostly there is one, which has ended.
  if (known?.length === 1 && known[0] && !isOpen(known[0])) known[0] = exchange
  else socket[exchanges] = [...openOn(socket), exchange]
}

// Those of which not all has been read, or not all has been sent.
const openOn = (socket: Remembering): Exchange[] => (socket[exchanges] ?? []).filter(isOpen)

const isOpen = ({ request, response }: Exchange) => !request.complete || !response.writableFinished

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

const leastBytes = 65_536

function watchBody(server: Server, { request, response }: Exchange, stallTimeout: number) {
  const { socket } = request
  let seen = socket.bytesRead
  const timer = setInterval(() => {
    const came = socket.bytesRead - seen
    seen += came
    if (request.complete || socket.destroyed) return clearInterval(timer)
    // What has arrived and is not read yet: then it is we who are slow. Once answered, the rest is only let pass.
    const isWelcome = !response.headersSent && (came >= leastBytes || request.readableLength > 0)
    if (isWelcome) return
    clearInterval(timer)
    const error = Object.assign(new Error('the body stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    server.emit('clientError', error, socket)
  }, stallTimeout)
  timer.unref()
  request.once('end', () => clearInterval(timer))
}
