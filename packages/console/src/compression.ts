import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

const codings = { br: promisify(brotliCompress), gzip: promisify(gzip) }
const minBytes = 512

/**
 * An `onSend` hook for routes with constant responses. Brotli at the highest quality is slow, so each response is
 * compressed once, at its first request.
 */
export function compressOnce() {
  const compressed = new Map<string, Promise<Buffer>>()
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    if (reply.statusCode === 200) reply.header('vary', 'accept-encoding')
    const isWhole = request.method === 'GET' && reply.statusCode === 200
    if (!isWhole || !(payload instanceof Readable || typeof payload === 'string')) return payload
    const coding = codingOf(request.headers['accept-encoding'])
    if (!coding || Number(reply.getHeader('content-length')) < minBytes) return payload
    const key = `${coding} ${request.url.replace(/\?.*/, '')}`
    const known = compressed.get(key)
    const body = known ?? read(payload).then((bytes) => codings[coding](bytes))
    compressed.set(key, body)
    body.catch(() => compressed.delete(key))
    if (known && payload instanceof Readable) payload.destroy()
    const bytes = await body
    reply.header('content-encoding', coding).removeHeader('content-length')
    return bytes
  }
}

const read = async (payload: Readable | string) =>
  typeof payload === 'string' ? Buffer.from(payload) : buffer(payload)

const refused = /; *q=0(?:\.0{1,3})?$/i

/** The best accepted coding; `q=0` excludes one. */
function codingOf(accepted = ''): keyof typeof codings | undefined {
  const taken = accepted
    .toLowerCase()
    .split(',')
    .map((part) => part.trim())
  const names = taken.filter((part) => !refused.test(part)).map((part) => part.split(';', 1)[0])
  return names.includes('br') ? 'br' : names.includes('gzip') ? 'gzip' : undefined
}
