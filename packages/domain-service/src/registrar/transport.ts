import type { HttpError } from '@domains-and-files/http'
import { Agent, request } from 'undici'
import {
  registrarBadAnswer,
  registrarBusy,
  registrarError,
  registrarTimeout,
  registrarUnreachable,
} from '../errors.ts'
import { badAnswer, CallFailed } from './call-failed.ts'
import { type Envelope, type Expected, readEnvelope } from './envelope.ts'

export interface Account {
  url: string
  apiUser: string
  apiKey: string
  userName: string
  clientIp: string
}

const maxBytes = 10 * 1024 * 1024

/** HTTP to the registrar: one command, one POST, one answer. */
export class RegistrarTransport {
  readonly #account: Account
  readonly #timeoutMs: number
  readonly #agent: Agent

  constructor(account: Account, timeoutMs: number) {
    this.#account = account
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({
      connections: 16,
      connect: { timeout: timeoutMs },
      maxResponseSize: maxBytes,
    })
  }

  /** Sends one command and reads its answer. @throws {CallFailed} */
  async call(params: Record<string, string>, expected: Expected): Promise<Envelope> {
    return readEnvelope(await this.#post(expected.command, params), expected)
  }

  close(): Promise<void> {
    return this.#agent.close()
  }

  // Reads are POST too: that keeps the API key out of URLs, and so out of the logs of proxies.
  async #post(command: string, params: Record<string, string>): Promise<string> {
    try {
      const response = await request(this.#account.url, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/xml' },
        body: new URLSearchParams({
          ...this.#credentials(),
          Command: command,
          ...params,
        }).toString(),
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(this.#timeoutMs),
      })
      const body = await response.body.arrayBuffer()
      requireOk(response.statusCode)
      return decodeUtf8(body)
    } catch (error) {
      if (error instanceof CallFailed) throw error
      throw new CallFailed('unknown', describeFailure(error, this.#timeoutMs))
    }
  }

  #credentials() {
    const { apiUser, apiKey, userName, clientIp } = this.#account
    return { ApiUser: apiUser, ApiKey: apiKey, UserName: userName, ClientIp: clientIp }
  }
}

// The registrar reports too many requests as 405; all its other answers, errors included, are 200.
function requireOk(status: number) {
  if (status === 405) throw new CallFailed('busy', registrarBusy(60))
  if (status >= 500) throw new CallFailed('unknown', registrarError(`HTTP ${status}`))
  if (status !== 200) throw badAnswer(`is an HTTP ${status}`)
}

function decodeUtf8(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badAnswer('is not valid UTF-8')
  }
}

function describeFailure(error: unknown, timeoutMs: number): HttpError {
  const { name, code } = error as { name?: string; code?: string } // Anything can be thrown; both may be missing.
  if (name === 'TimeoutError' || code?.endsWith('_TIMEOUT') || code === 'ETIMEDOUT')
    return registrarTimeout(timeoutMs)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return registrarBadAnswer('is longer than 10 MiB')
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return registrarBadAnswer('is shorter than its Content-Length')
  if (code?.startsWith('HPE_')) return registrarBadAnswer('is not HTTP')
  return registrarUnreachable(code ?? name)
}
