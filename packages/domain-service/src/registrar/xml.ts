import { SaxesParser } from 'saxes'
import type { Element } from './responses.ts'

// A zone of 150 records has some 2,000 tags and attributes; the limit only stops markup bombs.
const maxMarkup = 200_000
const maxDepth = 32

/**
 * Parses one answer: a complete, well-formed `<ApiResponse>…</ApiResponse>`, alone but for comments around it. Refuses
 * DOCTYPE, entities other than XML's five, text beside elements, and more markup than any answer has.
 * @throws {SyntaxError} whose message quotes nothing of the document.
 */
export function parseResponse(document: string): Element {
  const parser = new SaxesParser({ defaultXMLVersion: '1.0', forceXMLVersion: true })
  const root = buildElements(parser)
  attempt(() => parser.write(document.trim()), 'is not well-formed XML')
  // A lenient parser takes a truncated zone for a shorter one, and the next write deletes the rest.
  attempt(() => parser.close(), 'is cut short')
  const [response] = root.children
  if (response?.name !== 'ApiResponse') throw new SyntaxError('is not an answer in XML')
  return response
}

// The messages of the parser quote the document.
function attempt(parse: () => void, fault: string) {
  try {
    parse()
  } catch (error) {
    throw error instanceof SyntaxError ? error : new SyntaxError(fault)
  }
}

/** @returns the parent of the document's root. */
function buildElements(parser: SaxesParser): Element {
  const root: Element = { name: '', attributes: {}, children: [], text: '' }
  const parents: Element[] = []
  let current = root
  let markup = 0
  const count = () => {
    if (++markup > maxMarkup) throw new SyntaxError('has too much markup')
  }
  const addText = (text: string) => {
    current.text += text
  }
  parser.on('doctype', () => {
    throw new SyntaxError('has a DOCTYPE')
  })
  parser.on('attribute', count)
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('opentag', ({ name, attributes }) => {
    count()
    if (parents.push(current) > maxDepth) throw new SyntaxError('is nested too deeply')
    const element = { name, attributes, children: [], text: '' }
    current.children.push(element)
    current = element
  })
  parser.on('closetag', () => {
    // Answers have no mixed content; text here is an element that lost its bracket.
    if (current.children.length > 0 && current.text.trim() !== '')
      throw new SyntaxError('has text between its elements')
    current = parents.pop() ?? root
  })
  return root
}
