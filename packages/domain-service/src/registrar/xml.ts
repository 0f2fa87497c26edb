import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { badAnswer } from './call-failed.ts'
import type { Element } from './responses.ts'

/**
 * Parses one answer: a complete, well-formed `<ApiResponse>…</ApiResponse>`, alone but for comments around it. Refuses
 * DOCTYPE, entities other than XML's five, a second root, text around the root, and more markup than any answer has.
 * @throws {CallFailed} whose message quotes nothing of the document.
 */
export function parseResponse(document: string): Element {
  const text = trimComments(document)
  if (!/^<ApiResponse[\s>]/.test(text)) throw badAnswer('is not an answer in XML')
  // A lenient parser takes a truncated zone for a shorter one, and the next write deletes the rest.
  if (!text.endsWith('</ApiResponse>')) throw badAnswer('is cut short')
  rejectUnsafe(text)
  if (XMLValidator.validate(text) !== true) throw badAnswer('is not well-formed XML')
  let nodes: Node[]
  try {
    nodes = parser.parse(text) as Node[] // With `preserveOrder` the parser returns lists of nodes.
  } catch {
    throw badAnswer('cannot be parsed')
  }
  const roots = toElements(nodes, 0)
  const [root] = roots
  if (!root || roots.length > 1 || root.name !== 'ApiResponse')
    throw badAnswer('has no single root')
  return root
}

// The document without its XML declaration, and without white space and comments around the root (XML 1.0, 2.1).
function trimComments(document: string): string {
  let text = document.trim().replace(/^<\?xml[^>]*\?>/, '')
  for (text = text.trimStart(); text.startsWith('<!--'); text = text.trimStart()) {
    const close = text.indexOf('-->', 4)
    if (close < 0) throw badAnswer('has an open comment or section')
    checkComment(text.slice(0, close))
    text = text.slice(close + 3)
  }
  while (text.endsWith('-->')) {
    const start = text.lastIndexOf('<!--')
    if (start < 0) break
    checkComment(text.slice(start, -3))
    text = text.slice(0, start).trimEnd()
  }
  return text
}

// XML 1.0, 2.5: no `--` inside a comment.
function checkComment(unclosed: string) {
  if (unclosed.length < 4 || unclosed.includes('--', 4)) throw badAnswer('has a broken comment')
}

function rejectUnsafe(text: string) {
  if (text.includes('<!DOCTYPE')) throw badAnswer('has a DOCTYPE')
  if (text.split(/<|="/, maxMarkup + 1).length > maxMarkup) throw badAnswer('has too much markup')
  if (/[\p{Cc}--[\t\n\r\x7f-\x9f]]/v.test(text)) throw badAnswer('has control characters')
  // An unclosed comment or section extends to the end: otherwise every `<!--` would be searched again.
  const plain = text.replace(/<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)/g, '')
  if (!plain.endsWith('</ApiResponse>')) throw badAnswer('has an open comment or section')
  if (plain.split('<').some(({ length }) => length > maxRun))
    throw badAnswer('has a longer text than any answer')
  if (/&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)/.test(plain)) {
    throw badAnswer('has an entity that XML does not know')
  }
  // The validator takes `</name attribute="…"/>` for a self-closing element, and a row would vanish.
  if (/<\/(?![\p{L}_][\p{L}\p{N}_.:-]*\s*>)/u.test(plain))
    throw badAnswer('has a broken closing tag')
}

// A zone of 150 records has some 2,000 tags and attributes; the limit only stops markup bombs.
const maxMarkup = 200_000
const maxDepth = 32
// An address has at most 2,500 characters, each escaped as up to six. The parser appends a tag or text character by
// character: one of 10 MiB takes it 15 seconds and 300 MiB.
const maxRun = 64 * 1024

// Entities are decoded below in one pass: the parser's several passes decode `&#38;amp;` twice.
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

function toElements(nodes: Node[], depth: number): Element[] {
  if (depth > maxDepth) throw badAnswer('is nested too deeply')
  return nodes.flatMap((node) => {
    const name = Object.keys(node).find((key) => key !== ':@')
    if (name === undefined || name.startsWith('#')) return []
    const inner = node[name] as Node[] // With `preserveOrder` an element holds its nodes.
    const attributes = Object.entries((node[':@'] ?? {}) as Record<string, string>)
    const children = toElements(inner, depth + 1)
    const text = inner.map(textOf).join('')
    // Answers have no mixed content; text here is an element that lost its bracket.
    if (children.length > 0 && text.trim() !== '') throw badAnswer('has text between its elements')
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
