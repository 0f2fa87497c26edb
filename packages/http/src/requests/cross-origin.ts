import type { IncomingMessage } from 'node:http'

/** CORS headers for responses that bypass the framework's CORS plugin. */
export type CrossOriginHeaders = (request: IncomingMessage) => Record<string, string>

/** Headers that let pages of these origins read a response (https://fetch.spec.whatwg.org/#http-cors-protocol). */
export const crossOriginHeaders =
  (origins: string[], exposed: string[]): CrossOriginHeaders =>
  ({ headers: { origin } }) =>
    origin !== undefined && origins.includes(origin)
      ? {
          'access-control-allow-origin': origin,
          'access-control-expose-headers': exposed.join(', '),
          vary: 'Origin',
        }
      : {}

/** Whether a request is a CORS preflight. A page cannot tell a rejected preflight from an unreachable service. */
export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
