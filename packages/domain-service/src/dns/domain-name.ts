import { domainToASCII } from 'node:url'
import { parse } from 'tldts'

/** A registered name in A-labels, and as the registrar wants it: `example` `.` `co.uk`. */
export interface Domain {
  name: string
  sld: string
  tld: string
}

/**
 * Reads a registered domain name: any case, Unicode or A-labels, with or without a trailing dot. A bare public suffix
 * and a subdomain (public suffix list, with its private part) are refused: written to the registrar, a name that
 * somebody shortened would overwrite the parent's zone.
 * @returns what is wrong with it, as a text, where it is none.
 */
export function readDomain(text: string): Domain | string {
  const name = toAscii(text.replace(/\.$/, ''))
  if (name === undefined || name.length > 253 || !isHostname(name) || !name.includes('.')) {
    return 'must be a domain name such as example.com'
  }
  if (/(?:^|\.)[0-9]+$/.test(name)) return 'must be a domain name, not an address'
  const registered = parse(name, { allowPrivateDomains: true }).domain
  if (registered === null)
    return 'is a public suffix, under which domains are registered: name the domain itself'
  if (registered !== name)
    return `is a subdomain: use ${registered}, and the rest as the name of a record`
  const dot = name.indexOf('.')
  return { name, sld: name.slice(0, dot), tld: name.slice(dot + 1) }
}

/** A-labels in lower case, or undefined. ASCII that no name has is refused before the URL rules could bend it. */
export function toAscii(text: string): string | undefined {
  if (/^[a-z0-9._*-]+$/.test(text)) return text
  if (/[^a-zA-Z0-9._*\u0080-\u{10ffff}-]/u.test(text)) return undefined
  if (/^\p{ASCII}*$/u.test(text)) return text.toLowerCase()
  // `1.2` and `0x7f.1` are addresses to a URL; with a U-label in it no such reading is possible.
  return domainToASCII(text) || undefined
}

const isHostname = (name: string) =>
  name.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label))
