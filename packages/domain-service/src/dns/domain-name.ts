import { domainToASCII, domainToUnicode } from 'node:url'
import { LRUCache } from 'lru-cache'
import { parse } from 'tldts'

/** A registered domain name in A-labels, and its parts for the registrar: `example` and `co.uk`. */
export interface Domain {
  readonly name: string
  readonly sld: string
  readonly tld: string
}

/**
 * Parses a registered domain name: any case, Unicode or A-labels, with or without a trailing dot. Rejects a bare public
 * suffix and a subdomain (public suffix list with its private section): a client that strips `sub.` would overwrite
 * the parent's zone.
 * @returns the fault as a text for anything else.
 */
export const readDomain = (text: string): Domain | string =>
  text.length > maxTextLength ? parseDomain(text) : knownNames.memo(text)

// Requests mostly name the same few domains, and parsing a name takes several microseconds.
const knownNames = new LRUCache<string, Domain | string>({ max: 1000, memoMethod: (text) => parseDomain(text) })
const maxTextLength = 255

function parseDomain(text: string): Domain | string {
  const name = toAscii(text.replace(/\.$/, ''))
  if (name === undefined || name.length > 253 || !isHostname(name) || !/\.(?![0-9]+$)[^.]+$/.test(name))
    return 'must be a domain name such as example.com, not an address'
  const registered = parse(name, { allowPrivateDomains: true }).domain
  if (registered === null) return 'is a public suffix: use a domain registered under it'
  if (registered !== name) return `is a subdomain: use ${registered}, and the rest as the name of a record`
  const dot = name.indexOf('.')
  return { name, sld: name.slice(0, dot), tld: name.slice(dot + 1) }
}

/**
 * A-labels in lower case, or undefined. Digits must be ASCII: IDNA maps others (`１`) to them, and so makes another name.
 * ASCII outside names is rejected too: the URL rules would rewrite it.
 */
export function toAscii(text: string): string | undefined {
  if (/^[a-z0-9._*-]+$/.test(text)) return text
  if (/[^a-zA-Z0-9._*\u0080-\u{10ffff}-]|(?![0-9])\p{N}/u.test(text)) return undefined
  const labels = text.split(/[.\u3002\uff0e\uff61]/).map(labelToAscii) // The dots of UTS #46.
  return labels.includes(undefined) ? undefined : labels.join('.')
}

// Only a U-label: URL parsing reads the ASCII names `1.2` and `0x7f.1` as addresses.
function labelToAscii(label: string): string | undefined {
  if (/^\p{ASCII}*$/u.test(label)) return label.toLowerCase()
  const ascii = domainToASCII(label)
  return ascii === '' || ascii.includes('.') ? undefined : ascii // `\u2488` is `1.`.
}

const isHostname = (name: string) =>
  !/(?:^|\.)xn--/.test(domainToUnicode(name)) &&
  name.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label))
