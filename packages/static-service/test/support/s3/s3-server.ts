import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { reservePorts } from '../../../../../test/support/ports.ts'
import { openRealStore } from './real-store.ts'
import { S3Objects } from './s3-objects.ts'

/** What goes wrong with a request. */
export type Fault =
  /** A response of this status, and of this code or `SlowDown`, instead of the effect. */
  | { kind: 'status'; status: number; code?: string }
  /** The connection is closed before the effect, after half of the body was read. */
  | { kind: 'cut-request' }
  /** It takes effect, and the connection is closed instead of a response. */
  | { kind: 'lost-response' }
  /** The connection is closed after half of the response body. */
  | { kind: 'cut-response' }
  /** There is no response. */
  | { kind: 'silent' }
  /** The range of a GET is ignored. */
  | { kind: 'whole' }
  | { kind: 'slow'; ms: number }

/** Which call a request is. */
export interface S3Call {
  operation: 'put' | 'get' | 'head' | 'delete' | 'create' | 'part' | 'complete' | 'abort'
  key: string
}

export interface S3Server extends AsyncDisposable {
  /** Settings of the service for the bucket. */
  env: Record<string, string>
  url: string
  store: S3Objects
  /** Calls so far, but for those that only probe the store. */
  calls: S3Call[]
  /** Downloads whose connection was closed before their end. */
  brokenDownloads: number
  /** Bytes of objects that were handed to connections. */
  bytesSent: number
  /** Asked for each call. */
  fault: (call: S3Call) => Fault | undefined
  /** How far its clock is ahead; it refuses requests that were signed over 15 minutes before or after. */
  clockAheadMs: number
  /** What it announces as the time after which it closes idle connections. */
  keepAliveSeconds?: number
  /** The id of the only credentials that it accepts. */
  accessKey: string
  /** Refuses connections until `resume`. */
  pause: () => Promise<void>
  resume: () => Promise<void>
}

const bucketName = 'contents'
const accessKey = 'test-access-key'
const maxSkewMs = 900_000

/**
 * An S3 store for tests, with the calls that the service needs, and faults: see docs/adr. `test:scale` runs tests that
 * inject none on OpenStack Swift instead.
 */
export async function startS3(): Promise<S3Server> {
  const env = await openRealStore()
  return env ? { ...(await startOwn()), env } : startOwn()
}

/** The store for tests, on a given port or a free one. */
export async function startOwn(givenPort?: number): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 's3-'))
  const store = new S3Objects(folder)
  const server = createServer((request, response) => {
    handle(request, response).catch(() => {
      if (request.method === 'GET') result.brokenDownloads += 1
      response.destroy()
    })
  })
  server.keepAliveTimeout = 0 // A connection that it closed by itself would be one more fault.
  const port = givenPort ?? (await reservePorts())
  const listen = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen()
  const url = `http://127.0.0.1:${port}`
  const pause = async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const call = callOf(request)
    if (!request.headers.authorization?.includes(`Credential=${result.accessKey}/`)) {
      return refuse(response, 403, 'InvalidAccessKeyId')
    }
    const now = Date.now() + result.clockAheadMs
    response.setHeader('date', new Date(now).toUTCString())
    if (result.keepAliveSeconds) response.setHeader('keep-alive', `timeout=${result.keepAliveSeconds}`)
    if (Math.abs(now - signedAt(request)) > maxSkewMs) return refuse(response, 403, 'RequestTimeTooSkewed')
    if (!call) return refuse(response, 404, 'NoSuchBucket')
    if (!call.key.endsWith('/probe')) result.calls.push(call)
    const fault = result.fault(call)
    if (fault && (await fail(request, response, fault))) return
    const onSent = (bytes: number) => {
      result.bytesSent += bytes
    }
    await answer({ request, response, store, call, fault, onSent })
  }

  const result: S3Server = {
    env: {
      S3_BUCKET: bucketName,
      S3_ENDPOINT: url,
      S3_FORCE_PATH_STYLE: 'true',
      S3_PREFIX: 'files',
      AWS_ACCESS_KEY_ID: accessKey,
      AWS_SECRET_ACCESS_KEY: 'test-secret-key',
    },
    url,
    store,
    calls: [],
    bytesSent: 0,
    brokenDownloads: 0,
    fault: () => undefined,
    clockAheadMs: 0,
    accessKey,
    pause,
    resume: listen,
    async [Symbol.asyncDispose]() {
      if (server.listening) await pause()
      await rm(folder, { recursive: true })
    },
  }
  return result
}

// Such as 20270115T093000Z.
function signedAt({ headers }: IncomingMessage): number {
  const date = /^(....)(..)(..T..)(..)(..Z)$/.exec(String(headers['x-amz-date'])) ?? []
  const [, year, month, hour, minutes, seconds] = date
  return Date.parse(`${year}-${month}-${hour}:${minutes}:${seconds}`)
}

function callOf({ method = '', url = '' }: IncomingMessage): (S3Call & { query: URLSearchParams }) | undefined {
  const { pathname, searchParams: query } = new URL(url, 'http://localhost')
  const [, bucket, ...rest] = pathname.split('/').map(decodeURIComponent)
  if (bucket !== bucketName) return undefined
  const kinds: Record<string, S3Call['operation']> = {
    PUT: query.has('partNumber') ? 'part' : 'put',
    GET: 'get',
    HEAD: 'head',
    DELETE: query.has('uploadId') ? 'abort' : 'delete',
    POST: query.has('uploads') ? 'create' : 'complete',
  }
  const operation = kinds[method]
  return operation && { operation, key: rest.join('/'), query }
}

/** Carries out a fault before the effect; false if the call goes on. */
async function fail(request: IncomingMessage, response: ServerResponse, fault: Fault) {
  if (fault.kind === 'slow') await wait(fault.ms)
  if (fault.kind === 'status') {
    request.resume()
    refuse(response, fault.status, fault.code ?? 'SlowDown')
  }
  if (fault.kind === 'cut-request') {
    const half = Number(request.headers['content-length'] ?? 0) / 2
    let read = 0
    for await (const chunk of request) {
      read += chunk.length
      if (read >= half) break
    }
    response.destroy()
  }
  if (fault.kind === 'silent') request.resume()
  return ['status', 'cut-request', 'silent'].includes(fault.kind)
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  store: S3Objects
  call: S3Call & { query: URLSearchParams }
  fault: Fault | undefined
  onSent: (bytes: number) => void
}

async function answer(exchange: Exchange) {
  const { call, response, fault } = exchange
  if (call.operation === 'get' || call.operation === 'head') return read(exchange)
  const { status = 200, code, headers = {}, body = '' } = await change(exchange)
  if (fault?.kind === 'lost-response') return response.destroy()
  if (code) return refuse(response, status, code)
  response.writeHead(status, headers).end(body)
}

interface Answer {
  status?: number
  code?: string
  headers?: Record<string, string>
  body?: string
}

async function change({ request, store, call: { operation, key, query } }: Exchange): Promise<Answer> {
  const uploadId = query.get('uploadId') ?? ''
  // As stores do that know no such checksums.
  if (Object.keys(request.headers).some((name) => /^x-amz-(?:sdk-)?checksum/.test(name)))
    return { status: 501, code: 'NotImplemented' }
  switch (operation) {
    case 'put':
    case 'part': {
      const stored = await store.receive(request)
      const claimed = request.headers['x-amz-content-sha256']
      if (stored.sha256 !== claimed) return { status: 400, code: 'XAmzContentSHA256Mismatch' }
      if (operation === 'put') return { headers: { etag: store.put(key, stored) } }
      const upload = store.uploads.get(uploadId)
      if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' }
      upload.parts.set(Number(query.get('partNumber')), stored)
      return { headers: { etag: `"${stored.md5}"` } }
    }
    case 'create':
      return { body: xml('InitiateMultipartUploadResult', { UploadId: store.startUpload(key) }) }
    case 'complete': {
      const numbers = [...(await text(request)).matchAll(/<PartNumber>(\d+)</g)].map(([, digits]) => Number(digits))
      const finished = store.finishUpload(uploadId, numbers)
      if ('code' in finished) return { status: finished.code === 'NoSuchUpload' ? 404 : 400, ...finished }
      return { body: xml('CompleteMultipartUploadResult', { ETag: finished.etag }) }
    }
    case 'abort':
      return (await store.abortUpload(uploadId)) ? { status: 204 } : { status: 404, code: 'NoSuchUpload' }
    default:
      await store.remove(key)
      return { status: 204 }
  }
}

async function read({ request, response, store, call, fault, onSent }: Exchange) {
  const object = store.objects.get(call.key)
  if (!object) return refuse(response, 404, 'NoSuchKey')
  const { size, etag } = object
  const header = fault?.kind === 'whole' ? '' : request.headers.range
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(header ?? '') ?? []
  const start = Number(first ?? 0)
  const end = Math.min(Number(last ?? size - 1) + 1, size)
  if (start > size) return refuse(response, 416, 'InvalidRange')
  const range = first === undefined ? {} : { 'content-range': `bytes ${start}-${end - 1}/${size}` }
  response.writeHead(first === undefined ? 200 : 206, {
    etag,
    'content-length': end - start,
    ...range,
  })
  if (call.operation === 'head') return response.end()
  if (fault?.kind === 'lost-response') return response.destroy()
  const limit = fault?.kind === 'cut-response' ? Math.floor((end - start) / 2) : Number.POSITIVE_INFINITY
  let sent = 0
  const cut = new Transform({
    transform(chunk, _encoding, done) {
      const piece = chunk.subarray(0, limit - sent)
      sent += piece.length
      onSent(piece.length)
      done(piece.length < chunk.length ? new Error('cut') : null, piece)
    },
  })
  await pipeline(store.read(object, start, end), cut, response)
}

const xml = (root: string, fields: Record<string, string>) =>
  `<?xml version="1.0" encoding="UTF-8"?><${root}>${Object.entries(fields)
    .map(([name, value]) => `<${name}>${value.replaceAll('"', '&quot;')}</${name}>`)
    .join('')}</${root}>`

function refuse(response: ServerResponse, status: number, code: string) {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(xml('Error', { Code: code, Message: code }))
}
