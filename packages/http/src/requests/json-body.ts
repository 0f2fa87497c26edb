import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { receiveBody } from '../limits/request-bodies.ts'
import { HttpError, malformedBody } from '../problem-details.ts'

const mediaTypes = ['application/json', 'application/merge-patch+json']

/**
 * Parses JSON bodies strictly: UTF-8, uncompressed, no prototype keys, at most 5,000 values. An empty body is rejected
 * only by routes that need one, since many clients send `content-type: application/json` with every request.
 */
export function parseJsonBodies(app: FastifyInstance) {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(mediaTypes, async (request: FastifyRequest) => {
    const body = await receiveBody(request)
    const schema = request.routeOptions.schema?.body as z.ZodType | undefined
    if (body.length === 0 && schema?.safeParse(undefined).success !== false) return undefined
    if ((request.headers['content-encoding'] ?? 'identity') !== 'identity')
      throw contentCodingNotSupported()
    const text = textOf(request, body)
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    void parseJson(request, text, (error, value) => {
      if (error) reject(malformedBody(text ? describeError(text) : 'The body is empty: send JSON'))
      else if (hasMoreThan(maxValues, value)) reject(tooManyValues())
      else resolve(value)
    })
    return promise
  })
}

/**
 * The text of a body, without its byte order mark.
 * @throws {HttpError} 415 if its type names another charset, 400 if it is not valid UTF-8.
 */
export function textOf({ headers }: FastifyRequest, body: Buffer): string {
  const [, charset = 'utf-8'] =
    /;\s*charset="?([^\s";]*)/i.exec(headers['content-type'] ?? '') ?? []
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw charsetNotSupported()
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

// Several times the largest sensible body. Validation is expensive: 100,000 values in 300 KB blocked the event loop for
// seconds.
const maxValues = 5000

// RFC 9110, 15.5.16.
const contentCodingNotSupported = () =>
  new HttpError(
    415,
    'unsupported_media_type',
    'Send the body without Content-Encoding: JSON is not decompressed',
    { headers: { 'accept-encoding': 'identity' } },
  )

const charsetNotSupported = () =>
  new HttpError(415, 'unsupported_media_type', 'Send the body as UTF-8, and name no other charset')

const tooManyValues = () =>
  new HttpError(413, 'body_too_large', `The body has more than ${maxValues} values`)

// Iterative, since deep nesting would overflow the stack.
function hasMoreThan(max: number, body: unknown): boolean {
  const found = [body]
  for (let at = 0; at < found.length; at += 1) {
    const value = found[at]
    if (typeof value !== 'object' || value === null) continue
    const inner = Array.isArray(value) ? value : Object.values(value)
    if (found.length + inner.length > max) return true
    found.push(...inner)
  }
  return false
}
