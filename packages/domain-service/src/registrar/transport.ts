import type { HttpError } from '@domains-and-files/http'
import { Agent, request } from 'undici'
import {
  registrarBadAnswer,
  registrarBusy,
  registrarError,
  registrarTimeout,
  registrarUnreachable,
} from '../errors.ts'
import { mapRegistrarError, type Verdict } from './error-mapping.ts'
import { childOf, childrenOf, type Element, parseResponse } from './xml.ts'

export interface Account {
  url: string
  apiUser: string
  apiKey: string
  userName: string
  clientIp: string
}

/** A command that did not succeed, and what that says of whether it was done. */
export class CallFailed extends Error {
  readonly kind: Verdict['kind']
  readonly error: HttpError
  /** The registrar's error number, where it gave one. */
  readonly number: string | undefined

  constructor(kind: Verdict['kind'], error: HttpError, number?: string) {
    super(error.message, { cause: error.cause })
    this.kind = kind
    this.error = error
    this.number = number
  }
}

const maxBytes = 10 * 1024 * 1024

/** The registrar's HTTP side: one command, one POST, one answer. */
export class RegistrarTransport {
  readonly #account: Account
  readonly #timeout: number
  readonly #agent: Agent

  constructor(account: Account, timeout: number) {
    this.#account = account
    this.#timeout = timeout
    this.#agent = new Agent({ connections: 16, connect: { timeout }, maxResponseSize: maxBytes })
  }

  /**
   * Sends one command and gives the element `result` of its answer, with its siblings' parent.
   * @throws {CallFailed}
   */
  async call(
    command: string,
    params: Record<string, string>,
    expected: { result: string; domain: string },
  ) {
    const text = await this.#post(command, params)
    return readResult(text, { command, ...expected })
  }

  close(): Promise<void> {
    return this.#agent.close()
  }

  // By POST also for reads: the key stays out of addresses, and so out of the logs of what lies between.
  async #post(command: string, params: Record<string, string>): Promise<string> {
    const { url, apiUser, apiKey, userName, clientIp } = this.#account
    const form = {
      ApiUser: apiUser,
      ApiKey: apiKey,
      UserName: userName,
      ClientIp: clientIp,
      Command: command,
    }
    try {
      const answer = await request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/xml' },
        body: new URLSearchParams({ ...form, ...params }).toString(),
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(this.#timeout),
      })
      const body = await answer.body.arrayBuffer()
      if (answer.statusCode === 405) throw new CallFailed('busy', registrarBusy(60))
      if (answer.statusCode >= 500)
        throw new CallFailed('unknown', registrarError(`HTTP ${answer.statusCode}`))
      if (answer.statusCode !== 200) {
        throw new CallFailed('unknown', registrarBadAnswer(`is an HTTP ${answer.statusCode}`))
      }
      return decodeUtf8(body)
    } catch (error) {
      if (error instanceof CallFailed) throw error
      throw new CallFailed('unknown', explain(error, this.#timeout))
    }
  }
}

/**
 * Judges an answer: `Status` and `Errors` first, since a refused command can come with a result that looks like data.
 * The answer must be of this command, and about this domain.
 * @throws {CallFailed}
 */
export function readResult(
  text: string,
  expected: { command: string; result: string; domain: string },
): { response: Element; result: Element } {
  const root = parse(text)
  const refusals = childrenOf(childOf(root, 'Errors'), 'Error').map((error) => ({
    number: error.attributes.Number?.trim() ?? '',
    words: error.text,
  }))
  if (refusals.length > 0) {
    const verdicts = refusals.map((refusal) => ({
      refusal,
      ...mapRegistrarError(refusal, expected.command, expected.domain),
    }))
    const telling =
      verdicts.find((verdict) => verdict.error.code !== 'registrar_error') ?? verdicts[0]
    if (telling) throw new CallFailed(telling.kind, telling.error, telling.refusal.number)
  }
  const status = root.attributes.Status?.toUpperCase()
  if (status !== 'OK')
    throw new CallFailed(
      'unknown',
      registrarError(`status ${status === 'ERROR' ? 'ERROR' : 'unknown'} without a reason`),
    )

  const response = childOf(root, 'CommandResponse')
  const said = [response?.attributes.Type, childOf(root, 'RequestedCommand')?.text.trim()]
  if (said.some((name) => name && name.toLowerCase() !== expected.command.toLowerCase())) {
    throw badResponse('belongs to another command')
  }
  const [result, ...more] = childrenOf(response, expected.result)
  if (!response || !result || more.length > 0) throw badResponse(`has no single ${expected.result}`)
  return { response, result }
}

export const badResponse = (what: string) => new CallFailed('unknown', registrarBadAnswer(what))

function parse(text: string): Element {
  try {
    return parseResponse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw badResponse(error.message)
    throw error
  }
}

function decodeUtf8(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badResponse('is not valid UTF-8')
  }
}

function explain(error: unknown, timeout: number): HttpError {
  const { name, code } = error as { name?: string; code?: string } // Read as what it may have; both may be missing.
  if (name === 'TimeoutError' || code?.endsWith('_TIMEOUT') || code === 'ETIMEDOUT')
    return registrarTimeout(timeout)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return registrarBadAnswer('is longer than 10 MiB')
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return registrarBadAnswer('is shorter than it said')
  if (code?.startsWith('HPE_')) return registrarBadAnswer('is not HTTP')
  return registrarUnreachable(code ?? name)
}
