import { SaxesParser } from 'saxes'
import type { Element } from './responses.ts'

// A zone of 150 records has some 2,000 tags and attributes; the limit only stops markup bombs.
const maxMarkup = 200_000
const maxDepth = 32

/**
 * Parses one answer: a complete, well-formed `<ApiResponse>…</ApiResponse>`, alone but for comments around it. Refuses
 * DOCTYPE, entities other than XML's five, and more markup than any answer has. A lenient parser takes a truncated zone
 * for a shorter one, and the next write deletes the rest.
 * @throws {SyntaxError} whose message quotes nothing of the document.
 */
export function parseResponse(document: string): Element {
  const parser = new SaxesParser<{ xmlns: false; position: false }>({ xmlns: false, position: false })
  const top: Element = { name: '', attributes: {}, children: [], text: '' }
  const path = [top]
  let markup = 0
  const refuse = (fault: string) => {
    throw new SyntaxError(fault)
  }
  const count = () => {
    if (++markup > maxMarkup) refuse('has too much markup')
  }
  const addText = (text: string) => {
    const element = path.at(-1)
    if (element) element.text += text
  }
  parser.on('error', () => refuse('is not well-formed XML'))
  parser.on('doctype', () => refuse('has a DOCTYPE'))
  parser.on('attribute', count)
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('opentag', ({ name, attributes }) => {
    count()
    if (path.length > maxDepth) refuse('is nested too deeply')
    const element: Element = { name, attributes, children: [], text: '' }
    path.at(-1)?.children.push(element)
    path.push(element)
  })
  parser.on('closetag', () => {
    const element = path.pop()
    // Answers have no mixed content; text here is an element that lost its bracket.
    if (element && element.children.length > 0 && element.text.trim() !== '')
      refuse('has text between its elements')
  })
  parser.write(document.trim()).close()
  const [root] = top.children
  if (root?.name !== 'ApiResponse') throw new SyntaxError('is not an answer in XML')
  return root
}
