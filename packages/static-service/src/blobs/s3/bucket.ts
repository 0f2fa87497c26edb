import http from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { PutObjectCommand, S3Client, S3ClientConfig, UploadPartCommand } from '@aws-sdk/client-s3'
import { HttpError } from '@domains-and-files/http'
import { BytesLost, contentsUnavailable, insufficientStorage } from '../../errors.ts'
import type { Slice } from '../../rfc9110/byte-ranges.ts'

type Sdk = typeof import('@aws-sdk/client-s3')

export interface BucketOptions {
  bucket: string
  region: string
  /** Undefined: the endpoint of AWS for the region. */
  endpoint?: string | undefined
  forcePathStyle: boolean
  /** Undefined: the standard chain of the AWS SDK. */
  credentials: S3ClientConfig['credentials'] | undefined
  /** Milliseconds without progress after which a call fails. */
  timeoutMs: number
}

export type CallCounts = Record<'calls' | 'failures' | 'seconds', number>

export interface Multipart {
  key: string
  uploadId: string
}

/** A part of a multipart upload that the store has received. */
export interface UploadedPart {
  number: number
  etag: string | undefined
}

/**
 * Calls to a bucket of an S3 store. Retries transient failures, at most three attempts; does not retry timeouts.
 * @throws {HttpError} from every method: `unavailable`, or `insufficient_storage` if the store is full.
 */
export class Bucket {
  readonly counts: Record<string, CallCounts> = {}
  readonly #sdk: Sdk
  readonly #client: S3Client
  readonly #bucket: string

  /** Loads the AWS SDK. Does not call the store. */
  static async open(options: BucketOptions): Promise<Bucket> {
    return new Bucket(await import('@aws-sdk/client-s3'), options)
  }

  private constructor(sdk: Sdk, { bucket, timeoutMs, ...options }: BucketOptions) {
    this.#sdk = sdk
    this.#bucket = bucket
    const agentOptions = { keepAlive: true, maxSockets: 512, timeout: timeoutMs }
    this.#client = new sdk.S3Client({
      region: options.region,
      forcePathStyle: options.forcePathStyle,
      ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
      ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
      maxAttempts: 1, // `#call` retries.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false, // With it, the SDK opens a new connection for each request.
      requestHandler: {
        connectionTimeout: connectMs,
        socketTimeout: 0, // The agents have a limit.
        throwOnRequestTimeout: true,
        httpAgent: limit(new http.Agent(agentOptions), timeoutMs),
        httpsAgent: limit(new https.Agent(agentOptions), timeoutMs),
      },
    })
  }

  /** Stores an object; the store compares its bytes with their SHA-256 digest. Returns the entity tag. */
  put(key: string, bytes: Uint8Array, sha256: string): Promise<string | undefined> {
    const input = { ...this.#at(key), Body: bytes, ContentLength: bytes.length }
    const command = withDigest(new this.#sdk.PutObjectCommand(input), sha256)
    return this.#call('put', async () => (await this.#client.send(command)).ETag)
  }

  /** The bytes from `start` up to `end`; undefined if there is no such object. Aborting closes the connection. */
  get(key: string, { start, end }: Slice, abortSignal: AbortSignal) {
    const input = { ...this.#at(key), Range: `bytes=${start}-${end - 1}` }
    const command = new this.#sdk.GetObjectCommand(input)
    return this.#call('get', async () => {
      const found = await this.#client.send(command, { abortSignal }).catch(ignoreMissing)
      if (!found) return undefined
      // The SDK types the body for browsers too; in Node it is a stream.
      const body = found.Body as Readable
      const range = /^bytes (\d+)-/.exec(found.ContentRange ?? '')?.[1] ?? '0'
      if (Number(range) === start) return { body, etag: found.ETag }
      body.destroy()
      throw new Error(`the object store answered a range from ${start} with one from ${range}`)
    })
  }

  /** Size and entity tag of an object; undefined if there is none. */
  head(key: string, options: { requestTimeout?: number } = {}) {
    const command = new this.#sdk.HeadObjectCommand(this.#at(key))
    return this.#call('head', async () => {
      const found = await this.#client.send(command, options).catch(ignoreMissing)
      return found && { size: found.ContentLength, etag: found.ETag }
    })
  }

  async remove(key: string): Promise<void> {
    const command = new this.#sdk.DeleteObjectCommand(this.#at(key))
    await this.#call('delete', () => this.#client.send(command).catch(ignoreMissing))
  }

  startMultipart(key: string): Promise<string> {
    const command = new this.#sdk.CreateMultipartUploadCommand(this.#at(key))
    return this.#call('multipart', async () => {
      const { UploadId } = await this.#client.send(command)
      if (UploadId === undefined) throw new Error('the object store named no multipart upload')
      return UploadId
    })
  }

  putPart({ number, ...upload }: Multipart & { number: number }, bytes: Uint8Array, sha256: string) {
    const part = { PartNumber: number, Body: bytes, ContentLength: bytes.length }
    const command = withDigest(new this.#sdk.UploadPartCommand({ ...this.#of(upload), ...part }), sha256)
    return this.#call('part', async () => ({ number, etag: (await this.#client.send(command)).ETag }))
  }

  /** Joins the parts to an object of this size. Returns its entity tag. */
  finishMultipart({ size, ...upload }: Multipart & { size: number }, parts: UploadedPart[]) {
    const named = parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag }))
    const command = new this.#sdk.CompleteMultipartUploadCommand({
      ...this.#of(upload),
      MultipartUpload: { Parts: named },
    })
    return this.#call('multipart', async () => {
      try {
        return (await this.#client.send(command)).ETag
      } catch (error) {
        // The response of an earlier attempt may have been lost.
        const found = isMissing(error) ? await this.head(upload.key) : undefined
        if (found?.size === size) return found.etag
        throw error
      }
    })
  }

  async abortMultipart(upload: Multipart): Promise<void> {
    const command = new this.#sdk.AbortMultipartUploadCommand(this.#of(upload))
    await this.#call('multipart', () => this.#client.send(command).catch(ignoreMissing))
  }

  close(): void {
    this.#client.destroy()
  }

  #at(key: string) {
    return { Bucket: this.#bucket, Key: key }
  }

  #of({ key, uploadId }: Multipart) {
    return { ...this.#at(key), UploadId: uploadId }
  }

  async #call<T>(operation: string, attempt: () => Promise<T>): Promise<T> {
    const counts = this.counts[operation] ?? { calls: 0, failures: 0, seconds: 0 }
    this.counts[operation] = counts
    for (let attempts = 1; ; attempts += 1) {
      const start = performance.now()
      counts.calls += 1
      try {
        return await attempt()
      } catch (error) {
        counts.failures += 1
        if (attempts >= maxAttempts || !isTransient(error)) throw storageError(error)
      } finally {
        counts.seconds += (performance.now() - start) / 1000
      }
      // Jitter avoids synchronized retries.
      await wait(attempts * 100 * (0.5 + Math.random()))
    }
  }
}

const connectMs = 3000
const maxAttempts = 3

/** The store checks the signed digest. The SDK uses this one instead of hashing the body again. */
function withDigest<Command extends PutObjectCommand | UploadPartCommand>(command: Command, sha256: string): Command {
  // The stack is typed by the command's input and output, which do not matter here.
  const { middlewareStack } = command as PutObjectCommand
  middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request as { headers: Record<string, string> }
      headers['x-amz-content-sha256'] = sha256
      return next(args)
    },
    { step: 'build' },
  )
  return command
}

function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}

// The socket timeout of the AWS SDK starts three seconds late. This one has the name of the SDK's own timeout errors.
function limit<Agent extends http.Agent>(agent: Agent, timeoutMs: number): Agent {
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    const socket = connect(options, callback)
    const silence = new Error(`the object store made no progress for ${timeoutMs} ms`)
    return socket?.on('timeout', () => socket.destroy(Object.assign(silence, { name: 'TimeoutError' })))
  }
  const reuse = agent.reuseSocket.bind(agent)
  agent.reuseSocket = (stream, request) => {
    reuse(stream, request)
    request.setTimeout(timeoutMs) // The store may have announced a shorter one for idle connections.
  }
  return agent
}

// Whether an object, or a multipart upload, does not exist. A bucket that does not exist is a failure.
const isMissing = (error: unknown) =>
  statusOf(error) === 404 && !(error instanceof Error && error.name === 'NoSuchBucket')

// Whether an immediate retry may succeed: after lost connections, overload, and bytes damaged in transit; after 403, which
// has no code if a HEAD was signed by another clock than the store's: the SDK follows that from then on. Not after a
// timeout: the client waited long enough.
function isTransient(error: unknown): boolean {
  const status = statusOf(error)
  if (status === undefined) return !(error instanceof HttpError) && !isOver(error)
  if (status === 507) return false
  return status >= 500 || [403, 408, 429].includes(status) || (error instanceof Error && retryable.test(error.name))
}

// The error that a client gets for a failed call.
function storageError(error: unknown): unknown {
  if (error instanceof HttpError) return error
  if (error instanceof Error && error.name === 'NoSuchUpload') return new BytesLost(error)
  const isFull = statusOf(error) === 507 || (error instanceof Error && error.name === 'QuotaExceeded')
  return isFull ? insufficientStorage(error) : contentsUnavailable(error)
}

const retryable = /^(?:RequestTimeout|SlowDown|BadDigest|XAmzContentSHA256Mismatch|OperationAborted)$/

// The SDK names lost connections TimeoutError, too.
function isOver(error: unknown) {
  if (!(error instanceof Error)) return false
  const isLost = 'code' in error && /^(?:ECONNRESET|EPIPE)$/.test(String(error.code))
  return error.name === 'AbortError' || (error.name === 'TimeoutError' && !isLost)
}

// Undefined: there was no response.
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined
  // Errors of the AWS SDK have it.
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode
}
