type Value = string | number | boolean

/** An attribute without a value is left out. */
export type Attributes = Record<string, Value | null | undefined>

/** One XML element: attributes in their order, then text or elements. */
export interface Element {
  name: string
  attributes: Attributes
  content: string | Element[]
}

export function element(name: string, attributes: Attributes = {}, content: string | Element[] = []): Element {
  return { name, attributes, content }
}

/** Elements with a text each, by their names. */
export const leaves = (texts: Record<string, Value>): Element[] =>
  Object.entries(texts).map(([name, text]) => element(name, {}, String(text)))

/**
 * A refusal of the registrar. Clients rely on the number; the words may change. `skeleton`: content of CommandResponse,
 * which some have. `isGlobal`: before the command was read, so it is not echoed, and there is no CommandResponse.
 */
export class ErrorResponse extends Error {
  readonly number: string
  readonly details: { isGlobal?: boolean; skeleton?: Element[] }

  constructor(number: string, message: string, details: ErrorResponse['details'] = {}) {
    super(message)
    this.number = number
    this.details = details
  }
}

/** A refusal of the caller, whatever the command. */
export const accessRefused = (number: string, message: string) => new ErrorResponse(number, message, { isGlobal: true })

export const keyRefused = () => accessRefused('1011102', 'The API key is not valid, or API access is not enabled')
export const commandMissing = () => accessRefused('1010104', 'Parameter Command is missing')

export const domainMissing = (parameter: string) => new ErrorResponse('2010166', `Parameter ${parameter} is missing`)
export const domainNotFound = (skeleton: Element[] = []) =>
  new ErrorResponse('2019166', 'Domain name not found', { skeleton })
export const domainNotEditable = () => new ErrorResponse('2030166', 'Edit permission for this domain is not given')

export const parameterMissing = (parameter: string) => new ErrorResponse('2010288', `Parameter ${parameter} is missing`)
export const parameterInvalid = (parameter: string, reason: string) =>
  new ErrorResponse('2011288', `Parameter ${parameter} is invalid: ${reason}`)

/** The parts of a response around its result. */
export interface Envelope {
  /** As the registrar spells it; undefined if unknown. */
  command: string | undefined
  /** As the caller spelled it. */
  requested: string
  /** Name of the server that answers. */
  server: string
}

export function renderAnswer(envelope: Envelope, answer: Element[] | ErrorResponse): string {
  const refusal = answer instanceof ErrorResponse ? answer : undefined
  const { isGlobal = false, skeleton = [] } = refusal?.details ?? {}
  const command = isGlobal ? undefined : envelope.command
  const requested = isGlobal ? '' : envelope.requested.toLowerCase()
  const result = answer instanceof ErrorResponse ? skeleton : answer
  const parts = [
    element('Errors', {}, refusal && [element('Error', { Number: refusal.number }, refusal.message)]),
    element('Warnings'),
    element('RequestedCommand', {}, requested),
    ...(command ? [element('CommandResponse', { Type: command }, result)] : []),
    element('Server', {}, envelope.server),
    // Not a typo: the registrar writes the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, '0'),
  ]
  const root = element('ApiResponse', { Status: refusal ? 'ERROR' : 'OK', xmlns }, parts)
  // Two spaces, CRLF, none after the last tag.
  return ['<?xml version="1.0" encoding="utf-8"?>', ...render(root, '')].join('\r\n')
}

const xmlns = 'http://api.namecheap.com/xml.response'

function render({ name, attributes, content }: Element, indent: string): string[] {
  const pairs = Object.entries(attributes).map(([key, value]) =>
    value === undefined || value === null ? '' : ` ${key}="${escapeText(value)}"`,
  )
  const start = `${indent}<${name}${pairs.join('')}`
  if (content.length === 0) return [`${start} />`]
  if (typeof content === 'string') return [`${start}>${escapeText(content)}</${name}>`]
  const inner = content.flatMap((child) => render(child, `${indent}  `))
  return [`${start}>`, ...inner, `${indent}</${name}>`]
}

function escapeText(value: Value): string {
  const escaped = String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  // Line ends and tabs, which XML parsers turn into spaces in attributes, and C0 controls: the panel accepts anything.
  return escaped.replace(/["[\p{Cc}--[\x7f-\x9f]]]/gv, (character) =>
    character === '"' ? '&quot;' : `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`,
  )
}
