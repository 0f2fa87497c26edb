import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { answerSocketError } from '../limits/connections.ts'
import { HttpError } from '../problem-details.ts'

/** Options of Node's server that leave to us what it would answer without a problem, or read one of two ways. */
export const parserOptions = {
  // Doubled fields that can be there once are seen whole, and refused by whoever reads them; Node would take the first.
  joinDuplicateHeaders: true,
  requireHostHeader: false,
}

/**
 * Refuses what Node's parser takes though a proxy in front of us may read it in another way (RFC 9112, 3.2 and 6.1),
 * and answers as everything else what Node would answer in words of its own.
 */
export function rejectAmbiguousFraming(app: FastifyInstance) {
  // All headers that fit the parser's 16 KiB: it would drop those past the 2,000th silently, preconditions too.
  app.server.maxHeadersCount = 0
  // An expectation that is not known may be ignored (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    app.server.emit('request', request, response),
  )
  // No tunnels: a CONNECT is not routed.
  app.server.on('connect', (_request, socket) => answerSocketError(new Error(), socket as Socket))
  app.addHook('onRequest', ({ raw }, reply, done) => {
    // What comes with an upgrade that is not made is lost in Node's parser: no answer must be taken for one to that.
    if (raw.headers.upgrade !== undefined) reply.header('connection', 'close')
    const fault = findFramingFault(raw)
    if (!fault) return done()
    done(new HttpError(400, 'malformed_request', fault, { headers: { connection: 'close' } }))
  })
}

/** Why a request is refused as ambiguous, or undefined. */
export function findFramingFault({
  headers,
  httpVersion,
  url,
}: IncomingMessage): string | undefined {
  const { host, 'transfer-encoding': coding } = headers
  if (httpVersion === '0.9') return 'This is HTTP/0.9: speak HTTP/1.1'
  if (host === undefined && httpVersion !== '1.0') return 'Send one header Host'
  if (host !== undefined && !/^[\w.:[\]~%-]*$/.test(host))
    return 'Send one header Host, and a valid one'
  if (url?.includes('#')) return 'A path ends before its #: send it without'
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return 'The body can be sent with Transfer-Encoding: chunked, in HTTP/1.1, and no other way'
  }
  return undefined
}
