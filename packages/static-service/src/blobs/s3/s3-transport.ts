import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { HttpError } from '@domains-and-files/http'
import { BytesLost, contentsUnavailable, insufficientStorage } from '../../errors.ts'

/** Agents that close a connection after `timeoutMs` without progress in either direction. */
export function limitedAgents(timeoutMs: number): Record<'httpAgent', http.Agent> & Record<'httpsAgent', https.Agent> {
  const options = { keepAlive: true, maxSockets }
  return {
    httpAgent: limit(new http.Agent(options), timeoutMs),
    httpsAgent: limit(new https.Agent(options), timeoutMs),
  }
}

const maxSockets = 512

// The timeout of the AWS SDK starts three seconds late.
function limit<Agent extends http.Agent>(agent: Agent, timeoutMs: number): Agent {
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    // Both agents connect by sockets; their type allows any stream.
    const socket = connect(options, callback) as Socket
    socket.on('timeout', () => socket.destroy(new SilenceError(timeoutMs)))
    return socket.setTimeout(timeoutMs)
  }
  const reuse = agent.reuseSocket.bind(agent)
  agent.reuseSocket = (stream, request) => {
    reuse(stream, request)
    // The agent removed the timeout while the connection was idle.
    request.setTimeout(timeoutMs)
  }
  return agent
}

/** Has the name of the SDK's own timeout errors. */
class SilenceError extends Error {
  override name = 'TimeoutError'

  constructor(timeoutMs: number) {
    super(`the object store made no progress for ${timeoutMs} ms`)
  }
}

/** Whether an object, or a multipart upload, does not exist. A bucket that does not exist is a failure. */
export const isMissing = (error: unknown) =>
  statusOf(error) === 404 && !(error instanceof Error && error.name === 'NoSuchBucket')

/**
 * Whether an immediate retry may succeed: after lost connections, overload, and bytes damaged in transit. Not after a
 * timeout: the client waited long enough.
 */
export function isTransient(error: unknown): boolean {
  const status = statusOf(error)
  if (status === undefined) return !(error instanceof HttpError) && !isOver(error)
  if (status === 507) return false
  return status >= 500 || status === 429 || status === 408 || (isNamed(error) && retryable.test(error.name))
}

/** The error that a client gets for a failed call. */
export function storageError(error: unknown): unknown {
  if (error instanceof HttpError) return error
  if (isNamed(error) && error.name === 'NoSuchUpload') return new BytesLost(error)
  const isFull = statusOf(error) === 507 || (isNamed(error) && error.name === 'QuotaExceeded')
  return isFull ? insufficientStorage(error) : contentsUnavailable(error)
}

const retryable = /^(?:RequestTimeout|SlowDown|BadDigest|XAmzContentSHA256Mismatch|OperationAborted)$/

const isNamed = (error: unknown): error is Error => error instanceof Error

// The SDK names lost connections TimeoutError, too.
function isOver(error: unknown) {
  if (!isNamed(error)) return false
  const isLost = 'code' in error && /^(?:ECONNRESET|EPIPE)$/.test(String(error.code))
  return error.name === 'AbortError' || (error.name === 'TimeoutError' && !isLost)
}

/** Undefined: there was no response. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined
  // Errors of the AWS SDK have it.
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode
}
