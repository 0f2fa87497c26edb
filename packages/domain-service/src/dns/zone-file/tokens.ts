import type { Fault } from '@domains-and-files/http'

/** A word or a quoted string of a zone file, escapes not decoded yet. */
export interface Token {
  text: string
  quoted: boolean
}

/** One record or directive, which may span lines in parentheses, or one comment that has a line of its own. */
export interface Entry {
  /** Where it begins, from 1. */
  line: number
  /** Begins with white space: the owner of the record before it applies (RFC 1035, 5.1). */
  indented: boolean
  tokens: Token[]
  /** The text after the semicolon; then there are no tokens. */
  comment: string | undefined
}

const patterns = {
  space: /[ \t\r\f\v]+/y,
  comment: /;[^\n]*/y,
  quoted: /"((?:[^"\\\n]|\\[^\n])*)"/y,
  word: /(?:[^\s;()"\\]|\\[^\n])+/y,
}

// Parsing blocks the event loop. A full zone has 150 records, whose longest text has 157 strings; a text of 2500
// characters, of four octets each, has 40,000 characters as `\DDD`.
const maxLines = 10_000
const maxWords = 50_000
const maxWordLength = 40_000

/** Splits a zone file (RFC 1035, 5.1) into entries. Linear in the length of the text. */
export function readEntries(text: string): { entries: Entry[]; faults: Fault[] } {
  const scanner = new EntryScanner(text.replace(/^\ufeff/, ''))
  return scanner.read()
}

class EntryScanner {
  readonly #text: string
  readonly #entries: Entry[] = []
  readonly #faults: Fault[] = []
  #position = 0
  #line = 1
  #words = 0
  #depth = 0
  #entry = newEntry(1)

  constructor(text: string) {
    this.#text = text
  }

  read() {
    while (this.#position < this.#text.length && !this.#isTooMuch()) this.#step()
    if (this.#depth > 0) this.#fault(this.#entry.line, 'has a parenthesis that is not closed')
    this.#finish()
    return { entries: this.#entries, faults: this.#faults }
  }

  #isTooMuch() {
    if (this.#line <= maxLines && this.#words <= maxWords) return false
    this.#fault(this.#line, `is past the limit of ${maxLines} lines and ${maxWords} words`)
    return true
  }

  #step() {
    const character = this.#text[this.#position]
    if (character === '\n') return this.#endLine()
    if (character === '(' || character === ')') return this.#parenthesis(character)
    if (this.#match(patterns.space) !== undefined) {
      if (this.#isEmpty() && this.#isAtLineStart()) this.#entry.indented = true
      return
    }
    const comment = this.#match(patterns.comment)
    if (comment !== undefined) {
      if (this.#isEmpty() && this.#depth === 0) this.#entry.comment = comment.slice(1)
      return
    }
    const quoted = this.#match(patterns.quoted)
    const word = quoted ?? this.#match(patterns.word)
    this.#words += 1
    if (word === undefined || word.length > maxWordLength) {
      const problem = word === undefined ? notClosed : tooLong
      this.#fault(this.#line, problem)
      this.#entry.tokens = []
      this.#skipLine()
    } else if (quoted === undefined) this.#entry.tokens.push({ text: word, quoted: false })
    else this.#entry.tokens.push({ text: word.slice(1, -1), quoted: true })
  }

  #parenthesis(character: '(' | ')') {
    this.#position += 1
    this.#depth += character === '(' ? 1 : -1
    if (this.#depth >= 0) return
    this.#depth = 0
    this.#fault(this.#line, 'closes a parenthesis that is not open')
  }

  #endLine() {
    this.#position += 1
    this.#line += 1
    if (this.#depth === 0) this.#finish()
  }

  #finish() {
    if (!this.#isEmpty() || this.#entry.comment !== undefined) this.#entries.push(this.#entry)
    this.#entry = newEntry(this.#line)
  }

  #isEmpty() {
    return this.#entry.tokens.length === 0
  }

  #isAtLineStart() {
    return this.#depth === 0 && this.#entry.comment === undefined
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#position
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#position += found.length
    return found
  }

  #skipLine() {
    const end = this.#text.indexOf('\n', this.#position)
    this.#position = end < 0 ? this.#text.length : end
  }

  #fault(line: number, message: string) {
    this.#faults.push({ path: `/line/${line}`, message })
  }
}

const notClosed = 'has a quote or an escape that is not closed'
const tooLong = `has a word of more than ${maxWordLength} characters`

const newEntry = (line: number): Entry => ({
  line,
  indented: false,
  tokens: [],
  comment: undefined,
})

/** The text of a name; undefined where it is malformed or has a dot within a label, which the registrar cannot store. */
export const decodeName = ({ text }: Token): string | undefined =>
  /\\(?:\.|046)/.test(text) ? undefined : decodeText([text])

/**
 * The text of tokens in sequence, their octets together read as UTF-8; undefined where an escape (RFC 1035, 5.1: `\X` is
 * the character X, `\DDD` the octet of that decimal number) or the UTF-8 is malformed.
 */
export function decodeText(tokens: string[]): string | undefined {
  const octets = tokens.map(unescapeOctets)
  if (octets.includes(undefined)) return undefined
  try {
    return decoder.decode(Buffer.from(octets.join(''), 'latin1'))
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The octets of a token as latin1, its escapes decoded; undefined for a malformed escape. */
function unescapeOctets(token: string): string | undefined {
  let isMalformed = false
  const octets = Buffer.from(token).toString('latin1')
  const decoded = octets.replace(/\\(?:([0-9]{3})|([^0-9]))?/g, (_all, decimal, character) => {
    if (character !== undefined) return character
    isMalformed ||= !(Number(decimal) < 256)
    return String.fromCharCode(Number(decimal))
  })
  return isMalformed ? undefined : decoded
}

/** A text as quoted strings of at most 255 octets each (RFC 1035, 3.3). Pure ASCII: other octets are `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text).toString('latin1')
  const strings = octets.match(/.{1,255}/gs) ?? ['']
  return strings.map((each) => `"${each.replace(/["\\]|[^\x20-\x7e]/g, escapeOctet)}"`).join(' ')
}

const escapeOctet = (octet: string) =>
  octet === '"' || octet === '\\'
    ? `\\${octet}`
    : `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`
