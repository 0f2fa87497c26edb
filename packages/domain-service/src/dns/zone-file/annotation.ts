import type { RecordInput } from '../record-validation.ts'
import { decodeText, quoteText, readEntries, type Token } from './tokens.ts'

// What DNS cannot express, as comments that only this service reads:
//   ; domain-service email-type FWD
//   ; domain-service record www 1800 URL "https://example.net/"

const marker = 'domain-service'

/** What an annotation means; `fault` for one that is malformed. */
export type Annotation = { emailType: string } | { record: RecordInput } | { fault: string }

/** Prints the email type as a comment; undefined for one that could not be read back. */
export const annotateEmailType = (emailType: string) =>
  /^[A-Z0-9]{1,20}$/.test(emailType) ? `; ${marker} email-type ${emailType}` : undefined

/** Prints a record of any kind as a comment, to the byte. */
export function annotateRecord({ name, type, address, ttl, mx_pref }: RecordInput): string {
  const plain = /^[A-Za-z0-9@_*.-]+$/.test(name) ? name : quoteText(name)
  const words = [plain, ttl, type, quoteText(address), ...(mx_pref === undefined ? [] : [mx_pref])]
  return `; ${marker} record ${words.join(' ')}`
}

/** Reads a comment of a zone file; undefined where it is not an annotation. */
export function readAnnotation(comment: string): Annotation | undefined {
  const [first, kind] = comment.trim().split(/[ \t]+/, 2)
  if (first !== marker) return undefined
  if (kind === 'email-type') return readEmailType(comment)
  return kind === 'record' ? readRecord(comment) : { fault: 'is no known annotation' }
}

function readEmailType(comment: string): Annotation {
  const emailType = /email-type[ \t]+([A-Z0-9]{1,20})[ \t]*\r?$/.exec(comment)?.[1]
  return emailType === undefined ? { fault: 'must name an email type' } : { emailType }
}

function readRecord(comment: string): Annotation {
  const fault = { fault: 'must be such as: record www 1800 URL "https://example.net/"' }
  const { entries, faults } = readEntries(comment)
  const tokens = entries[0]?.tokens.slice(2) ?? []
  if (faults.length > 0 || entries.length !== 1) return fault
  const [name, ttl, type, address, ...rest] = groupQuoted(tokens)
  const [preference = ''] = rest
  if (name === undefined || address === undefined || rest.length > 1) return fault
  if (!/^[0-9]{1,9}$/.test(ttl ?? '') || !/^[0-9]{0,9}$/.test(preference) || !type) return fault
  const mxPref = preference === '' ? {} : { mx_pref: Number(preference) }
  return { record: { name, type, address, ttl: Number(ttl), ...mxPref } }
}

// Quoted strings in sequence are one text (RFC 1035, 3.3); a malformed one ends the list.
function groupQuoted(tokens: Token[]): string[] {
  const groups: Token[][] = []
  for (const token of tokens) {
    const last = groups.at(-1)
    if (token.quoted && last?.[0]?.quoted) last.push(token)
    else groups.push([token])
  }
  const texts = groups.map((group) => decodeText(group.map(({ text }) => text)))
  const malformed = texts.indexOf(undefined)
  return texts.slice(0, malformed < 0 ? undefined : malformed).filter((text) => text !== undefined)
}
