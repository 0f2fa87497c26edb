type Value = string | number | boolean

/** An attribute without a value is left out. */
export type Attributes = Record<string, Value | undefined>

/** One XML element: attributes in their order, then text or elements. */
export interface Element {
  name: string
  attributes: Attributes
  content: string | Element[]
}

/** An element; self-closed if empty. */
export function element(
  name: string,
  attributes: Attributes = {},
  content: string | Element[] = [],
): Element {
  return { name, attributes, content }
}

/** Elements with a text each, by their names. */
export const leaves = (texts: Record<string, Value>): Element[] =>
  Object.entries(texts).map(([name, text]) => element(name, {}, String(text)))

/** Renders a document as the registrar does: two spaces, CRLF, none after the last tag. */
export function renderDocument(root: Element): string {
  return ['<?xml version="1.0" encoding="utf-8"?>', ...render(root, '')].join('\r\n')
}

function render({ name, attributes, content }: Element, indent: string): string[] {
  const pairs = Object.entries(attributes).map(([key, value]) =>
    value === undefined ? '' : ` ${key}="${quote(value)}"`,
  )
  const start = `${indent}<${name}${pairs.join('')}`
  if (content.length === 0) return [`${start} />`]
  if (typeof content === 'string') return [`${start}>${escapeText(content)}</${name}>`]
  const inner = content.flatMap((child) => render(child, `${indent}  `))
  return [`${start}>`, ...inner, `${indent}</${name}>`]
}

// Line ends and tabs in attributes are written as character references: XML parsers turn literal ones into spaces.
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
