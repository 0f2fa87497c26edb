import type { ServerResponse } from 'node:http'
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from '../problem-details.ts'

/**
 * Status line and headers, validated and joined once for many responses. Node's `writeHead` does so for each, which
 * takes a sixth of the time of a small response (docs/adr/0021).
 */
export interface PreparedHead {
  status: number
  /** Text of the head up to the request id. */
  start: string
  /** Text of the head after the request id. */
  rest: string
  /** Names and values alternately, as `writeHead` takes them; the second entry is the request id. */
  headers: string[]
}

/** @throws {TypeError} if a header is invalid. */
export function prepareHead(status: number, headers: Record<string, string>): PreparedHead {
  const lines = Object.entries({ 'x-content-type-options': 'nosniff', ...headers })
  for (const [name, value] of lines) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
  }
  const start = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nx-request-id: `
  const rest = lines.map(([name, value]) => `\r\n${name}: ${value}`).join('')
  return { status, start, rest: flatten(rest), headers: ['x-request-id', '', ...lines.flat()] }
}

// V8 represents a concatenation as a rope, which each write would traverse.
const flatten = (text: string) => Buffer.from(text, 'latin1').toString('latin1')

/** Sends prepared heads. `keepAliveMs` is the server's time limit of idle connections. */
export class HeadSender {
  readonly #keepAlive: string
  #second = 0
  #date = ''

  constructor(keepAliveMs: number) {
    this.#keepAlive = keepAliveMs > 0 ? `\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}` : ''
  }

  /** As `writeHead`: the head leaves with the first bytes of the body. The request id is printable ASCII. */
  write(response: ServerResponse, head: PreparedHead, requestId: string) {
    // `_header` is private to Node: a version without it gets `writeHead`.
    const hasText = '_header' in response && response._header === null
    if (!response.shouldKeepAlive || !hasText) {
      // Safe to share: `writeHead` copies the array at once.
      head.headers[1] = requestId
      response.writeHead(head.status, head.headers)
      return
    }
    response.statusCode = head.status
    response._header =
      `${head.start}${requestId}${head.rest}` +
      `\r\nDate: ${this.#now()}\r\nConnection: keep-alive${this.#keepAlive}\r\n\r\n`
  }

  #now(): string {
    const second = Math.floor(Date.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#date = new Date(second * 1000).toUTCString()
    }
    return this.#date
  }
}
