import type { ErrorResponse } from './errors.ts'

type Value = string | number | boolean

/** One XML element: attributes in their order, then text or elements. */
export interface Element {
  name: string
  attributes: Record<string, Value>
  content: string | Element[]
}

/** An element; self-closed if empty. */
export function element(
  name: string,
  attributes: Record<string, Value> = {},
  content: string | Element[] = [],
): Element {
  return { name, attributes, content }
}

/** Renders a document as the registrar does: two spaces, CRLF, none after the last tag. */
function renderDocument(root: Element): string {
  return ['<?xml version="1.0" encoding="utf-8"?>', ...render(root, '')].join('\r\n')
}

function render({ name, attributes, content }: Element, indent: string): string[] {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}="${quote(value)}"`)
  const start = `${indent}<${name}${pairs.join('')}`
  if (content.length === 0) return [`${start} />`]
  if (typeof content === 'string') return [`${start}>${escapeText(content)}</${name}>`]
  const inner = content.flatMap((child) => render(child, `${indent}  `))
  return [`${start}>`, ...inner, `${indent}</${name}>`]
}

// XML parsers turn literal line ends and tabs of an attribute into spaces: written as references.
function quote(value: Value): string {
  return escapeText(String(value))
    .replaceAll('"', '&quot;')
    .replace(/[\t\n]/g, refer)
}

function escapeText(value: string): string {
  const escaped = value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  // C0 controls: the panel accepts anything.
  return escaped.replace(/[\p{Cc}--[\t\n\x7f-\x9f]]/gv, refer)
}

function refer(character: string): string {
  return `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`
}

interface Envelope {
  /** As the registrar spells it; undefined if unknown. */
  command: string | undefined
  /** As the caller spelled it; empty without authentication. */
  requested: string
  milliseconds: number
}

/** The answer of an executed command. */
export function renderResult(envelope: Envelope, result: Element[]): string {
  return renderEnvelope('OK', [], envelope, result)
}

/** The answer of a refused command. */
export function renderRefusal(envelope: Envelope, refusal: ErrorResponse): string {
  const errors = [element('Error', { Number: refusal.number }, refusal.message)]
  const command = refusal.isGlobal ? undefined : envelope.command
  const requested = refusal.isGlobal ? '' : envelope.requested
  return renderEnvelope('ERROR', errors, { ...envelope, command, requested }, refusal.skeleton)
}

function renderEnvelope(
  status: string,
  errors: Element[],
  { command, requested, milliseconds }: Envelope,
  result: Element[],
): string {
  const response = command ? [element('CommandResponse', { Type: command }, result)] : []
  const attributes = { Status: status, xmlns: 'http://api.namecheap.com/xml.response' }
  const parts = [
    element('Errors', {}, errors),
    element('Warnings'),
    element('RequestedCommand', {}, requested.toLowerCase()),
    ...response,
    element('Server', {}, 'SANDBOX01'),
    // The registrar does write the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, String(Number((milliseconds / 1000).toFixed(3)))),
  ]
  return renderDocument(element('ApiResponse', attributes, parts))
}
