import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { answerSocketError } from '../limits/connections.ts'
import { HttpError } from '../problem-details.ts'

/** Node server options that pass ambiguous requests on to `rejectAmbiguousFraming`. */
export const parserOptions = {
  // Duplicate singleton headers are joined, so that their reader rejects them; Node would keep the first.
  joinDuplicateHeaders: true,
  requireHostHeader: false,
}

/**
 * Rejects requests that Node accepts but a proxy may frame differently: request smuggling (RFC 9112, 3.2 and 6.1). Turns
 * Node's own error responses into problem details.
 */
export function rejectAmbiguousFraming(app: FastifyInstance) {
  // Unlimited within the parser's 16 KiB: Node would silently drop headers past the 2,000th, even preconditions.
  app.server.maxHeadersCount = 0
  // Unknown expectations may be ignored (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    app.server.emit('request', request, response),
  )
  continueAfterChecks(app)
  // CONNECT is not routed.
  app.server.on('connect', (_request, socket) => answerSocketError(new Error(), socket as Socket))
  app.addHook('onRequest', ({ raw }, reply, done) => {
    // Node drops bytes that follow a declined upgrade: close, so that no response is matched to them.
    if (raw.headers.upgrade !== undefined) reply.header('connection', 'close')
    const fault = findFramingFault(raw)
    if (!fault) return done()
    done(new HttpError(400, 'malformed_request', fault, { headers: { connection: 'close' } }))
  })
}

// Sends 100 Continue only to a request that passed the checks of its headers (RFC 9110, 10.1.1): a client is spared the
// upload of a body that is refused. Node then closes the connection, since such a client may or may not send the body.
function continueAfterChecks(app: FastifyInstance) {
  const waiting = new WeakSet<ServerResponse>()
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.add(response)
    app.server.emit('request', request, response)
  })
  app.addHook('preParsing', (_request, { raw }, payload, done) => {
    if (waiting.delete(raw)) raw.writeContinue()
    done(null, payload)
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
