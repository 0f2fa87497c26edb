import { HttpError } from '@domains-and-files/http'
import { contentsUnavailable, insufficientStorage } from '../../errors.ts'

/** Whether an object, or a multipart upload, does not exist. A bucket that does not exist is a failure. */
export const isMissing = (error: unknown) =>
  statusOf(error) === 404 && !(error instanceof Error && error.name === 'NoSuchBucket')

/**
 * Whether the same call may succeed when it is repeated at once: after lost connections, overload, and bytes damaged on
 * the way. Not after silence: the client waited long enough.
 */
export function isTransient(error: unknown): boolean {
  const status = statusOf(error)
  if (status === undefined) return !(error instanceof HttpError) && !isOver(error)
  if (status === 507) return false
  return (
    status >= 500 ||
    status === 429 ||
    status === 408 ||
    (isNamed(error) && retryable.test(error.name))
  )
}

/** The error that a client gets for a failed call. */
export function storageError(error: unknown): unknown {
  if (error instanceof HttpError) return error
  const isFull = statusOf(error) === 507 || (isNamed(error) && error.name === 'QuotaExceeded')
  return isFull ? insufficientStorage(error) : contentsUnavailable(error)
}

const retryable =
  /^(?:RequestTimeout|SlowDown|BadDigest|XAmzContentSHA256Mismatch|OperationAborted)$/

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
