import { HttpError } from '@domains-and-files/http'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { Agent, request } from 'undici'
import { registrarBusy, registrarError, registrarTimeout, registrarUnreachable } from '../errors.ts'
import { badAnswer, badResult, CallFailed, mapRegistrarErrors } from './call-failed.ts'
import { childOf, childrenOf, type Element } from './responses.ts'

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
    const apiKey = readApiKey()
    const body = new URLSearchParams({
      ApiUser: apiUser,
      ApiKey: apiKey,
      UserName: userName,
      ClientIp: clientIp,
      Command: call.command,
      ...call.params,
    })
    try {
      const response = await request(url, {
        // Reads are POST too: that keeps the API key out of URLs, and so out of the logs of proxies.
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/xml' },
        body: body.toString(),
        dispatcher: this.#agent.compose((dispatch) => (options, handler) => {
          // undici calls `onRequestStart` once the request has a connected socket, and then writes it.
          const start = handler.onRequestStart?.bind(handler)
          handler.onRequestStart = (...started) => {
            onSend()
            start?.(...started)
          }
          return dispatch(options, handler)
        }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      })
      const answer = await response.body.arrayBuffer()
      if (response.statusCode !== 200) throw statusFailed(response.statusCode)
      return readEnvelope(new TextDecoder('utf-8', { fatal: true }).decode(answer), call, apiKey)
    } catch (error) {
      if (error instanceof HttpError) throw error
      throw toCallFailed(error, this.#timeoutMs)
    }
  }

  close(): Promise<void> {
    return this.#agent.close()
  }
}

// Too many requests are 405, or 429 of a proxy in front of the registrar; its other answers, errors included, are 200.
function statusFailed(status: number): CallFailed {
  if (status === 405 || status === 429) return new CallFailed('busy', registrarBusy(60))
  if (status >= 500) return new CallFailed('unknown', registrarError(`HTTP ${status}`))
  return badAnswer(`is an HTTP ${status}`)
}

function toCallFailed(error: unknown, timeoutMs: number): CallFailed {
  const { name, code } = error as { name?: string; code?: string } // Anything can be thrown; both may be missing.
  if (name === 'TimeoutError' || code?.endsWith('_TIMEOUT') || code === 'ETIMEDOUT')
    return new CallFailed('unknown', registrarTimeout(timeoutMs))
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return badAnswer('is not valid UTF-8')
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return badAnswer('is longer than 10 MiB')
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return badAnswer('is shorter than its Content-Length')
  return new CallFailed('unknown', registrarUnreachable(code ?? name))
}

/**
 * Reads an answer. `Status` and `Errors` come first: a refused command can carry a result that looks like data. It must
 * belong to this command and have one result. The words of errors reach clients and logs, so they lose the API key.
 * @throws {CallFailed}
 */
export function readEnvelope(text: string, { command, result: name, domain }: Omit<Call, 'params'>, apiKey = '') {
  const root = parseResponse(text)
  const listed = childrenOf(root, 'Errors').flatMap((each) => childrenOf(each, 'Error'))
  const errors = listed.map((error) => ({
    number: error.attributes.Number?.trim() ?? '',
    words: apiKey ? error.text.replaceAll(apiKey, '…') : error.text,
  }))
  if (errors.length > 0) throw mapRegistrarErrors(errors, command, domain)
  const status = root.attributes.Status?.toUpperCase()
  if (status !== 'OK') {
    const problem = registrarError(`status ${status === 'ERROR' ? 'ERROR' : 'unknown'} without a reason`)
    throw new CallFailed('unknown', problem, { isAnswer: true })
  }

  const [response, ...others] = childrenOf(root, 'CommandResponse')
  const commands = [response?.attributes.Type, childOf(root, 'RequestedCommand')?.text.trim()]
  if (commands.some((each) => each && each.toLowerCase() !== command.toLowerCase()))
    throw badAnswer('belongs to another command')
  const [result, ...more] = childrenOf(response, name)
  if (!response || !result || others.length + more.length > 0) throw badResult(`has no single ${name}`)
  return { response, result }
}

/**
 * Parses one answer: a complete, well-formed `<ApiResponse>…</ApiResponse>`, alone but for comments around it. Refuses
 * DOCTYPE, entities other than XML's five, a second root, text around the root, and more markup than any answer has.
 * @throws {CallFailed} whose message quotes nothing of the document.
 */
export function parseResponse(document: string): Element {
  const text = document.trim()
  rejectUnsafe(text)
  if (XMLValidator.validate(text) !== true) throw badAnswer('is not well-formed XML')
  let nodes: Node[]
  try {
    nodes = parser.parse(text) as Node[] // With `preserveOrder` the parser returns lists of nodes.
  } catch {
    throw badAnswer('cannot be parsed')
  }
  const [root] = toElements(nodes) // The validator admits one root, and it begins with `<ApiResponse`.
  if (!root) throw badAnswer('has no root')
  return root
}

function rejectUnsafe(text: string) {
  if (text.includes('<!DOCTYPE')) throw badAnswer('has a DOCTYPE')
  if (text.split(/<|="/, maxMarkup + 1).length > maxMarkup) throw badAnswer('has too much markup')
  if (/[\p{Cc}--[\t\n\r\x7f-\x9f]]/v.test(text)) throw badAnswer('has control characters')
  // An unclosed comment or section extends to the end: otherwise every `<!--` would be searched again.
  const plain = text.replace(/<!--[\s\S]*?(-->|$)|<!\[CDATA\[[\s\S]*?(\]\]>|$)/g, (_all, ...ends) =>
    ends[0] || ends[1] ? '' : '<',
  )
  if (!/^(?:<\?xml[^>]*\?>)?\s*<ApiResponse[\s>]/.test(plain)) throw badAnswer('is not an answer in XML')
  // A lenient parser takes a truncated zone for a shorter one, and the next write deletes the rest.
  if (!plain.trimEnd().endsWith('</ApiResponse>')) throw badAnswer('is cut short')
  if (plain.split('<').some(({ length }) => length > maxRun)) throw badAnswer('has a longer text than any answer')
  if (/&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)/.test(plain)) {
    throw badAnswer('has an entity that XML does not know')
  }
  // The validator takes `</name attribute="…"/>` for a self-closing element, and a row would vanish.
  if (/<\/(?![\p{L}_][\p{L}\p{N}_.:-]*\s*>)/u.test(plain)) throw badAnswer('has a broken closing tag')
}

// A zone of 150 records has some 2,000 tags and attributes; the limit only stops markup bombs.
const maxMarkup = 200_000
// An address has at most 2,500 characters, each escaped as up to six. The parser appends a tag or text character by
// character: one of 10 MiB takes it 15 seconds and 300 MiB.
const maxRun = 64 * 1024

// Entities are decoded below, in one pass: the parser's several passes would decode `&#38;amp;` twice.
const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  parseAttributeValue: false,
  parseTagValue: false,
  trimValues: false,
  processEntities: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  cdataPropName: '#cdata',
  maxNestedTags: 32,
})

type Node = Record<string, unknown>

function toElements(nodes: Node[]): Element[] {
  return nodes.flatMap((node) => {
    const name = Object.keys(node).find((key) => key !== ':@')
    if (name === undefined || name.startsWith('#')) return []
    const inner = node[name] as Node[] // With `preserveOrder` an element holds its nodes.
    const children = toElements(inner)
    const text = inner.map(textOf).join('')
    // Answers have no mixed content; text here is an element that lost its bracket.
    if (children.length > 0 && text.trim() !== '') throw badAnswer('has text between its elements')
    const attributes = (node[':@'] ?? {}) as Record<string, string>
    for (const [key, raw] of Object.entries(attributes)) attributes[key] = decodeAttribute(raw)
    return { name, attributes, children, text }
  })
}

function textOf(node: Node): string {
  if (typeof node['#text'] === 'string') return decode(node['#text'])
  if (!Array.isArray(node['#cdata'])) return ''
  return node['#cdata'].map((part: Node) => String(part['#text'] ?? '')).join('')
}

// XML 1.0, 3.3.3: literal white space in an attribute is a space; a character reference is kept.
function decodeAttribute(raw: string): string {
  if (raw.includes('<')) throw badAnswer('has a tag inside a value')
  return decode(raw.replace(/\r\n|[\t\n\r]/g, ' '))
}

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const decode = (raw: string) =>
  raw.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([a-z]+));/g, (_all, hex, decimal, name) =>
    name ? (named[name] ?? '') : codePoint(hex ? Number.parseInt(hex, 16) : Number(decimal)),
  )

function codePoint(code: number): string {
  const isChar = code === 9 || code === 10 || code === 13 || (code >= 0x20 && code <= 0x10ffff)
  if (!isChar || (code >= 0xd800 && code <= 0xdfff)) throw badAnswer('refers to no character')
  return String.fromCodePoint(code)
}
