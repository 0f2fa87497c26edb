import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { bodyTooLarge, HttpError, malformedBody, unavailable, unsupportedCoding } from '../http-error.ts'
import { type Metrics, registerGauges } from '../monitoring/metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    requestBodies: RequestBodies
  }
}

export interface BodyLimits {
  /** Milliseconds without a byte after which a body gets 408; over three times as many it must average 1 KiB/s. */
  bodyIdleTimeoutMs: number
  /** Maximum bytes of all request bodies in memory; beyond that, bodies get 503. */
  maxBodyMemoryBytes: number
}

interface Body {
  request: IncomingMessage
  response: ServerResponse
  /** Bytes in memory. */
  held: number
  /** `bytesRead` of the socket at the last sample. */
  bytesRead: number
  quietSamples: number
  windowSamples: number
  windowBytes: number
}

/**
 * The request bodies of a server. Together they hold at most `maxBodyMemoryBytes`: a body counts until its response has
 * ended, since a queued request keeps it. A stalled or slow body gets 408.
 */
export class RequestBodies {
  readonly #server: Server
  readonly #limits: BodyLimits
  readonly #bodies = new Map<IncomingMessage, Body>()
  #heldBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(server: Server, limits: BodyLimits) {
    this.#server = server
    this.#limits = limits
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /**
   * Counts buffered bytes of a request's body until its response has ended. A streamed upload counts only what it buffers.
   * @throws {HttpError} 503 if all bodies together would hold more than `maxBodyMemoryBytes`.
   */
  hold(request: IncomingMessage, bytes: number) {
    const body = this.#bodies.get(request)
    if (!body) return
    if (this.#heldBytes + bytes > this.#limits.maxBodyMemoryBytes)
      throw unavailable(2, 'Too many request bodies at once: try again in a moment')
    body.held += bytes
    this.#heldBytes += bytes
  }

  /** Watches and counts the body of a request, from now to the end of its response. */
  add(request: IncomingMessage, response: ServerResponse) {
    const { bytesRead } = request.socket
    const body = { request, response, held: 0, bytesRead, quietSamples: 0, windowSamples: 0, windowBytes: 0 }
    this.#bodies.set(request, body)
    response.once('close', () => {
      this.#heldBytes -= body.held
      body.held = 0
      this.#forgetEnded(body)
    })
    this.#timer ??= setInterval(() => this.#cutStalled(), this.#limits.bodyIdleTimeoutMs / idleSamples)
    this.#timer.unref()
  }

  // A body may continue after its response: keep watching it until both have ended.
  #forgetEnded({ request, response }: Body) {
    if (!request.complete && !request.socket.destroyed) return
    if (response.closed) this.#bodies.delete(request)
    if (this.#bodies.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  // Counts samples, not time: after a suspension of the process, bytes that arrived meanwhile are still unread.
  #cutStalled() {
    for (const body of this.#bodies.values()) {
      const { request } = body
      this.#forgetEnded(body)
      if (request.complete || request.socket.destroyed || !this.#isStalled(body)) continue
      const error = Object.assign(new Error('the body stalled'), {
        code: 'ERR_HTTP_REQUEST_TIMEOUT',
      })
      this.#server.emit('clientError', error, request.socket)
    }
  }

  #isStalled(body: Body): boolean {
    const { request, response } = body
    const received = request.socket.bytesRead - body.bytesRead
    body.bytesRead += received
    // Unread bytes mean that the service is slow, not the client.
    const isUnread = request.readableLength > 0
    body.quietSamples = received > 0 || isUnread ? 0 : body.quietSamples + 1
    body.windowSamples = isUnread ? 0 : body.windowSamples + 1
    body.windowBytes = isUnread ? 0 : body.windowBytes + received
    if (body.quietSamples >= idleSamples) return true
    if (body.windowSamples < windowSamples) return false
    // After the response the rest is only discarded, so at the end of a window even a fast body is cut.
    const minBytes = (minBytesPerSecond * windowSamples * this.#limits.bodyIdleTimeoutMs) / idleSamples / 1000
    const isSlow = response.headersSent || body.windowBytes < minBytes
    body.windowSamples = 0
    body.windowBytes = 0
    return isSlow
  }
}

/** The bodies of an app's requests, as its `requestBodies`. */
export function limitBodies(app: FastifyInstance, limits: BodyLimits, metrics: Metrics | undefined): RequestBodies {
  const bodies = new RequestBodies(app.server, limits)
  app.decorate('requestBodies', bodies)
  const help = 'Bytes of request bodies received and not yet answered'
  registerGauges(metrics, { http_body_memory_bytes: [help, () => bodies.heldBytes] })
  return bodies
}

/**
 * The bytes of a body. What its reader leaves is discarded, so that the client can read the response.
 * @throws {HttpError} `malformed_body` if the client stops before its end.
 */
export async function* bodyChunks(request: IncomingMessage): AsyncGenerator<Buffer, void> {
  // The stream of a request without a body has ended already, and emits no events.
  if (request.readableEnded) return
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      // Small chunks that have arrived together come as one: each costs its reader as much as a large one.
      const more: Buffer | null = chunk.length < 4096 ? request.read(request.readableLength) : null
      yield more ? Buffer.concat([chunk, more]) : chunk
    }
  } catch (cause) {
    throw malformedBody('The body ended early: send it again', cause)
  } finally {
    request.resume()
  }
}

/**
 * Takes bodies of these media types and no others, on a scope of its own: `read` makes `request.body` of the whole body.
 * One that is larger than the `bodyLimit` of its route gets 413, one that ends early 400, 503 as `hold`.
 */
export function takeBodies(
  scope: FastifyInstance,
  types: string | string[],
  read: (body: Buffer, request: FastifyRequest) => unknown,
): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(types, async (request: FastifyRequest) => read(await receiveBody(request), request))
}

async function receiveBody({ server, raw, routeOptions }: FastifyRequest): Promise<Buffer> {
  if (raw.readableEnded) return Buffer.alloc(0) // As in `bodyChunks`.
  const { bodyLimit = smallBody } = routeOptions
  const { 'content-length': announced } = raw.headers
  const limit = announced === undefined ? bodyLimit : Number(announced)
  if (limit > bodyLimit) throw bodyTooLarge()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // One growing buffer, not a list of chunks: a chunk of one byte takes a hundred bytes of memory.
  let bytes = Buffer.alloc(0)
  let length = 0
  const onData = (chunk: Buffer) => {
    try {
      const end = length + chunk.length
      if (end > limit) throw bodyTooLarge()
      if (end > bytes.length) {
        // Large bodies get their announced length at once: outgrown buffers fill memory until garbage collection.
        const isLarge = announced !== undefined && end > maxGrownBytes
        const size = isLarge ? limit : Math.min(Math.max(end, 2 * length, 256), limit)
        server.requestBodies.hold(raw, size - bytes.length)
        const larger = Buffer.allocUnsafeSlow(size)
        bytes.copy(larger, 0, 0, length)
        bytes = larger
      }
      length += chunk.copy(bytes, length)
    } catch (error) {
      raw.off('data', onData).resume() // Discards the rest.
      reject(error)
    }
  }
  raw
    .on('data', onData)
    .once('end', () => resolve(bytes.subarray(0, length)))
    .once('error', () => reject(malformedBody('The body ended before its announced length')))
  return promise
}

/**
 * Parses JSON bodies strictly: UTF-8, uncompressed, no prototype keys, at most 5,000 values. An empty body is rejected
 * only by routes that need one, since many clients send `content-type: application/json` with every request.
 */
export function parseJsonBodies(app: FastifyInstance) {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  takeBodies(app, ['application/json', 'application/merge-patch+json'], async (body, request) => {
    const schema = request.routeOptions.schema?.body as z.ZodType | undefined
    if (body.length === 0 && schema?.safeParse(undefined).success !== false) return undefined
    refuseContentCoding(request.headers)
    const text = textOf(body, request)
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    void parseJson(request, text, (error, value) => {
      if (error) reject(malformedBody(text ? describeError(text) : 'The body is empty: send JSON'))
      else resolve(value)
    })
    const value = await promise
    limitValues(value)
    return value
  })
}

/**
 * The text of a body, without its byte order mark.
 * @throws {HttpError} 415 if its type names another charset, 400 if it is not valid UTF-8.
 */
export function textOf(body: Buffer, { raw }: FastifyRequest): string {
  // As it was sent: routes of bodies of any type hide it from the framework.
  const [type = ''] = raw.headersDistinct['content-type'] ?? []
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(type) ?? []
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset))
    throw new HttpError(415, 'unsupported_media_type', 'Send the body as UTF-8, and name no other charset')
  // Lenient decoding would silently change the caller's text.
  if (!isUtf8(body)) throw malformedBody('The body is not valid UTF-8')
  return body.toString().replace(/^\ufeff/, '')
}

// The framework also rejects keys that could pollute prototypes, although that is valid JSON.
function describeError(text: string): string {
  try {
    JSON.parse(text)
    return 'The body has a forbidden key such as __proto__'
  } catch (error) {
    const [place] = /line \d+ column \d+/.exec(String(error)) ?? []
    return place ? `The body is not valid JSON: see ${place}` : 'The body is not valid JSON'
  }
}

/**
 * Limits the values of parsed JSON, by default to several times those of the largest sensible body. Validation is
 * expensive: 100,000 values in 300 KB blocked the event loop for seconds.
 * @throws {HttpError} 413 body_too_large
 */
export function limitValues(body: unknown, max = 5_000): void {
  const found = [body] // Iterative, since deep nesting would overflow the stack.
  for (let at = 0; at < found.length; at += 1) {
    const value = found[at]
    if (typeof value !== 'object' || value === null) continue
    const inner = Array.isArray(value) ? value : Object.values(value)
    if (found.length + inner.length > max)
      throw new HttpError(413, 'body_too_large', `The body has more than ${max} values`)
    found.push(...inner)
  }
}

/** @throws {HttpError} 415 for a body that would have to be decoded. */
export function refuseContentCoding({ 'content-encoding': coding = 'identity' }: IncomingHttpHeaders): void {
  if (coding.toLowerCase() !== 'identity') throw unsupportedCoding()
}

/** Bytes, on routes without a `bodyLimit`, such as the login. */
export const smallBody = 16_384

const maxGrownBytes = 65_536

// A body is cut after ten samples without a byte. Its rate is measured over thirty.
const idleSamples = 10
const windowSamples = 3 * idleSamples
const minBytesPerSecond = 1024
