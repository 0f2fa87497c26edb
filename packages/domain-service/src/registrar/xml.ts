import { XMLParser, XMLValidator } from 'fast-xml-parser'

/** An element as it was read: every value is text, nothing is guessed to be a number. */
export interface Element {
  name: string
  attributes: Record<string, string>
  children: Element[]
  text: string
}

/**
 * Reads one answer of the registrar: a whole, well-formed `<ApiResponse>…</ApiResponse>`, and nothing else. Refuses a
 * DOCTYPE, entities but XML's own, a second root, text around the root, and more markup than any answer has.
 * @throws {SyntaxError} that quotes nothing of the document.
 */
export function parseResponse(document: string): Element {
  const text = document.trim()
  if (!/^(?:<\?xml[^>]*\?>\s*)?<ApiResponse[\s>]/.test(text))
    throw new SyntaxError('is not an answer in XML')
  // A parser that forgives would take a cut zone for a shorter one, and the next write would delete the rest.
  if (!text.endsWith('</ApiResponse>')) throw new SyntaxError('is cut short')
  if (text.includes('<!DOCTYPE')) throw new SyntaxError('has a DOCTYPE')
  if (countUpTo(text, '<', maxMarkup) + countUpTo(text, '="', maxMarkup) >= maxMarkup) {
    throw new SyntaxError('has too much markup')
  }
  if (/[\p{Cc}--[\t\n\r\x7f-\x9f]]/v.test(text)) throw new SyntaxError('has control characters')
  // One that does not end takes all that follows, so that it is looked for once and not from each place again.
  const plain = text.replace(/<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)/g, '')
  if (!plain.endsWith('</ApiResponse>')) throw new SyntaxError('has an open comment or section')
  if (/&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)/.test(plain)) {
    throw new SyntaxError('has an entity that XML does not know')
  }
  // The validator takes `</name attribute="…"/>` for an element that closes itself, and so a row would vanish.
  if (/<\/(?![\p{L}_][\p{L}\p{N}_.:-]*\s*>)/u.test(plain))
    throw new SyntaxError('has a broken closing tag')
  if (XMLValidator.validate(text) !== true) throw new SyntaxError('is not well-formed XML')
  const roots = toElements(parse(text), 0)
  const [root] = roots
  if (!root || roots.length > 1 || root.name !== 'ApiResponse')
    throw new SyntaxError('has no single root')
  return root
}

/** The children of that name, in any case: the registrar writes `host` and documents `Host`. */
export const childrenOf = (element: Element | undefined, name: string): Element[] =>
  element?.children.filter((child) => child.name.toLowerCase() === name.toLowerCase()) ?? []

export const childOf = (element: Element | undefined, name: string): Element | undefined =>
  childrenOf(element, name)[0]

// Ten thousand times what a zone of 150 records or a page of 100 domains has is still read; a bomb is not.
const maxMarkup = 200_000
const maxDepth = 32

// Entities are decoded here, in one pass: the parser's several passes would decode `&#38;amp;` twice.
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
})

type Node = Record<string, unknown>

function parse(text: string): Node[] {
  try {
    return parser.parse(text) as Node[] // With `preserveOrder` the parser gives lists of nodes.
  } catch {
    throw new SyntaxError('cannot be parsed')
  }
}

function toElements(nodes: Node[], depth: number): Element[] {
  if (depth > maxDepth) throw new SyntaxError('is nested too deeply')
  return nodes.flatMap((node) => {
    const name = Object.keys(node).find((key) => key !== ':@')
    if (name === undefined || name.startsWith('#')) return []
    const inner = node[name] as Node[] // An element's value is the list of its nodes.
    const attributes = Object.entries((node[':@'] ?? {}) as Record<string, string>)
    const children = toElements(inner, depth + 1)
    const text = inner.map(textOf).join('')
    // No answer mixes them, and an element whose bracket was lost is text.
    if (children.length > 0 && text.trim() !== '')
      throw new SyntaxError('has text between its elements')
    return {
      name,
      attributes: Object.fromEntries(
        attributes.map(([key, value]) => [key, decodeAttribute(value)]),
      ),
      children,
      text,
    }
  })
}

function textOf(node: Node): string {
  if (typeof node['#text'] === 'string') return decode(node['#text'])
  if (!Array.isArray(node['#cdata'])) return ''
  return node['#cdata'].map((part: Node) => String(part['#text'] ?? '')).join('')
}

// XML 1.0, 3.3.3: white space that is written as itself in an attribute is a space; as a reference it is kept.
function decodeAttribute(raw: string): string {
  if (raw.includes('<')) throw new SyntaxError('has a tag inside a value')
  return decode(raw.replace(/\r\n|[\t\n\r]/g, ' '))
}

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const decode = (raw: string) =>
  raw.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([a-z]+));/g, (_all, hex, decimal, name) =>
    name ? (named[name] ?? '') : codePoint(hex ? Number.parseInt(hex, 16) : Number(decimal)),
  )

function codePoint(code: number): string {
  const isChar = code === 9 || code === 10 || code === 13 || (code >= 0x20 && code <= 0x10ffff)
  if (!isChar || (code >= 0xd800 && code <= 0xdfff)) throw new SyntaxError('refers to no character')
  return String.fromCodePoint(code)
}

function countUpTo(text: string, part: string, most: number): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0 && count < most; at = text.indexOf(part, at + 1))
    count++
  return count
}
