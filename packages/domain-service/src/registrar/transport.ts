import { HttpError } from '@domains-and-files/http'
import { Agent, type Dispatcher, request } from 'undici'
import { registrarBusy, registrarError, registrarTimeout, registrarUnreachable } from '../errors.ts'
import { badAnswer, badResult, CallFailed, mapRegistrarErrors } from './call-failed.ts'
import { childOf, childrenOf, type Element } from './responses.ts'
import { parseResponse } from './xml.ts'

export interface Account {
  url: string
  apiUser: string
  /** The present API key: read for each call. */
  readApiKey: () => string
  userName: string
  clientIp: string
}

/** One command, as it is sent, and what its answer must be. */
export interface Call {
  command: string
  params: Record<string, string>
  /** The name of the result element. */
  result: string
  /** The domain in question; empty for a command about the whole account. */
  domain: string
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

  /**
   * Sends one command and reads its answer. `onSend` is called when a connection is free and open, right before the
   * first byte goes out; where it throws, nothing is sent, and the call fails with that error.
   * @throws {CallFailed}
   */
  async call(call: Call, onSend: () => void): Promise<{ response: Element; result: Element }> {
    const { url, apiUser, readApiKey, userName, clientIp } = this.#account
    const caller = {
      ApiUser: apiUser,
      ApiKey: readApiKey(),
      UserName: userName,
      ClientIp: clientIp,
    }
    const body = new URLSearchParams({ ...caller, Command: call.command, ...call.params })
    try {
      const response = await request(url, {
        // Reads are POST too: that keeps the API key out of URLs, and so out of the logs of proxies.
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/xml' },
        body: body.toString(),
        dispatcher: this.#agent.compose((dispatch) => (options, handler) => {
          watchStart(handler, onSend)
          return dispatch(options, handler)
        }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      })
      const answer = await response.body.arrayBuffer()
      requireOk(response.statusCode)
      return readEnvelope(new TextDecoder('utf-8', { fatal: true }).decode(answer), call)
    } catch (error) {
      if (error instanceof HttpError) throw error
      throw toCallFailed(error, this.#timeoutMs)
    }
  }

  close(): Promise<void> {
    return this.#agent.close()
  }
}

// undici calls `onRequestStart` once the request has a connected socket, and then writes it.
function watchStart(handler: Dispatcher.DispatchHandler, onSend: () => void) {
  const start = handler.onRequestStart?.bind(handler)
  handler.onRequestStart = (...started) => {
    onSend()
    start?.(...started)
  }
}

// The registrar reports too many requests as 405; all its other answers, errors included, are 200.
function requireOk(status: number) {
  if (status === 405) throw new CallFailed('busy', registrarBusy(60))
  if (status >= 500) throw new CallFailed('unknown', registrarError(`HTTP ${status}`))
  if (status !== 200) throw badAnswer(`is an HTTP ${status}`)
}

function toCallFailed(error: unknown, timeoutMs: number): CallFailed {
  const { name, code } = error as { name?: string; code?: string } // Anything can be thrown; both may be missing.
  if (name === 'TimeoutError' || code?.endsWith('_TIMEOUT') || code === 'ETIMEDOUT')
    return new CallFailed('unknown', registrarTimeout(timeoutMs))
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return badAnswer('is not valid UTF-8')
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return badAnswer('is longer than 10 MiB')
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return badAnswer('is shorter than its Content-Length')
  if (code?.startsWith('HPE_')) return badAnswer('is not HTTP')
  return new CallFailed('unknown', registrarUnreachable(code ?? name))
}

/**
 * Reads the envelope of an answer. `Status` and `Errors` come first: a refused command can carry a result that looks
 * like data. The answer must belong to this command and have exactly one result element.
 * @throws {CallFailed}
 */
export function readEnvelope(
  text: string,
  { command, result: resultName, domain }: Omit<Call, 'params'>,
) {
  const root = parseResponse(text)
  const errors = childrenOf(childOf(root, 'Errors'), 'Error').map((error) => ({
    number: error.attributes.Number?.trim() ?? '',
    words: error.text,
  }))
  if (errors.length > 0) throw mapRegistrarErrors(errors, command, domain)
  const status = root.attributes.Status?.toUpperCase()
  if (status !== 'OK') {
    const problem = registrarError(
      `status ${status === 'ERROR' ? 'ERROR' : 'unknown'} without a reason`,
    )
    throw new CallFailed('unknown', problem, { isAnswer: true })
  }

  const response = childOf(root, 'CommandResponse')
  const names = [response?.attributes.Type, childOf(root, 'RequestedCommand')?.text.trim()]
  if (names.some((name) => name && name.toLowerCase() !== command.toLowerCase())) {
    throw badAnswer('belongs to another command')
  }
  const [result, ...more] = childrenOf(response, resultName)
  if (!response || !result || more.length > 0) throw badResult(`has no single ${resultName}`)
  return { response, result }
}
