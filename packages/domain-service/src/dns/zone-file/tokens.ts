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

// In this order: white space, a line end, a comment, a parenthesis, a quoted string, a word, and what is none of these.
const pattern = /([ \t\r\f\v]+)|(\n)|;([^\n]*)|([()])|"((?:[^"\\\n]|\\[^\n])*)"|((?:[^\s;()"\\]|\\[^\n])+)|[^\n]+/g

// Line ends included. Parsing blocks the event loop; a full zone has 150 records, whose longest text has 157 strings.
const maxTokens = 50_000

/** Splits a zone file (RFC 1035, 5.1) into entries. Linear in the length of the text. */
export function readEntries(text: string): { entries: Entry[]; faults: Fault[] } {
  const [entries, faults]: [Entry[], Fault[]] = [[], []]
  let [line, count, depth] = [1, 0, 0]
  let entry = newEntry(line)
  const fault = (at: number, message: string) => faults.push({ path: `/line/${at}`, message })
  const finish = () => {
    if (entry.tokens.length > 0 || entry.comment !== undefined) entries.push(entry)
    entry = newEntry(line)
  }
  for (const match of text.matchAll(pattern)) {
    const [, space, end, comment, parenthesis, quoted, word] = match
    count += space ? 0 : 1
    if (count > maxTokens) {
      fault(line, `is past the limit of ${maxTokens} words and lines`)
      entry.tokens = []
      break
    }
    const isBegun = entry.tokens.length > 0 || entry.comment !== undefined || depth > 0
    if (end) {
      line += 1
      if (depth === 0) finish()
    } else if (space) entry.indented ||= !isBegun
    else if (comment !== undefined) entry.comment ??= isBegun ? undefined : comment
    else if (parenthesis) {
      depth += parenthesis === '(' ? 1 : -1
      if (depth < 0) fault(line, 'closes a parenthesis that is not open')
      depth = Math.max(depth, 0)
    } else if (quoted !== undefined) entry.tokens.push({ text: quoted, quoted: true })
    else if (word !== undefined) entry.tokens.push({ text: word, quoted: false })
    else {
      fault(line, 'has a quote or an escape that is not closed')
      entry.tokens = []
    }
  }
  if (depth > 0) fault(entry.line, 'has a parenthesis that is not closed')
  finish()
  return { entries, faults }
}

const newEntry = (line: number): Entry => ({ line, indented: false, tokens: [], comment: undefined })

/** The text of a name; undefined where it is malformed or has a dot within a label, which the registrar cannot store. */
export const decodeName = ({ text }: Token): string | undefined =>
  /\\(?:\.|046)/.test(text) ? undefined : decodeText([text])

/**
 * The text of tokens in sequence, their octets together read as UTF-8; undefined where an escape (RFC 1035, 5.1: `\X` is
 * the character X, `\DDD` the octet of that decimal number) or the UTF-8 is malformed.
 */
export function decodeText(tokens: string[]): string | undefined {
  const octets = tokens.map(unescapeOctets)
  if (!octets.every((each) => each !== undefined)) return undefined
  try {
    return decoder.decode(Buffer.concat(octets))
  } catch {
    return undefined
  }
}

const digitOf = (octet = 0) => (octet >= 0x30 && octet <= 0x39 ? octet - 0x30 : Number.NaN)

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The octets of a token, its escapes decoded; undefined for a malformed escape. A file may have a million of them. */
function unescapeOctets(token: string): Buffer | undefined {
  const octets = Buffer.from(token)
  let length = 0
  for (let at = 0; at < octets.length; at++, length++) {
    const isEscape = octets[at] === 0x5c // A backslash.
    if (isEscape) at += 1
    const octet = octets[at]
    if (octet === undefined) return undefined
    octets[length] = octet
    if (!isEscape || Number.isNaN(digitOf(octet))) continue
    const decimal = digitOf(octet) * 100 + digitOf(octets[at + 1]) * 10 + digitOf(octets[at + 2])
    if (!(decimal < 256)) return undefined
    octets[length] = decimal
    at += 2
  }
  return octets.subarray(0, length)
}

/** A text as quoted strings of at most 255 octets each (RFC 1035, 3.3). Pure ASCII: other octets are `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text).toString('latin1')
  const strings = octets.match(/.{1,255}/gs) ?? ['']
  return strings.map((each) => `"${each.replace(/["\\]|[^\x20-\x7e]/g, escapeOctet)}"`).join(' ')
}

const escapeOctet = (octet: string) =>
  octet === '"' || octet === '\\' ? `\\${octet}` : `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`
