import type { IncomingMessage } from 'node:http'

/** Of responses that the framework's CORS plugin does not see. */
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

/** Asked by browsers before a request: a page takes its refusal for a service that does not answer. */
export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
