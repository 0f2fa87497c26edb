import type { IncomingMessage } from 'node:http'
import { methodNotAllowed, prepareHead, type RawResponse } from '@domains-and-files/http'

/**
 * The response to a request that is neither GET nor HEAD: to CORS preflights of any origin, whatever CORS_ORIGIN names for the
 * API. @throws {HttpError} `method_not_allowed`.
 */
export function respondToOther({ method = '', headers }: IncomingMessage): RawResponse {
  const isPreflight =
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  if (isPreflight) return { head: preflightHead }
  throw methodNotAllowed(method, 'GET, HEAD')
}

const preflightHead = prepareHead(204, {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  // The wildcard does not cover Authorization, which some clients send everywhere.
  'access-control-allow-headers': '*, authorization',
  'access-control-max-age': '86400',
})
