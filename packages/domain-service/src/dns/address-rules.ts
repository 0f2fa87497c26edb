import { isIPv4, isIPv6 } from 'node:net'
import { caaParts, isCaaIssueValue } from './caa.ts'
import { toAscii } from './domain-name.ts'
import { hasTarget, type Row } from './record.ts'

/** An address in the form in which the registrar stores it. */
export function normalizeAddress(type: string, address: string): string {
  if (type === 'CAA') {
    const caa = caaParts(address)
    return caa ? `${caa.flags} ${caa.tag} "${caa.value}"` : address
  }
  if (!hasTarget(type)) return address
  // The registrar stores targets with a trailing dot, and has dropped MX rows sent without it.
  return `${(toAscii(address) ?? address).replace(/\.$/, '')}.`
}

/** What is wrong with the address of a row, if anything; nothing for an unknown type. */
export function validateAddress(row: Row, domain: string): string | undefined {
  const rule = rules.get(row.type)
  if (!rule) return undefined
  if (row.address === '' || row.address === '.') return 'is required'
  return rule(row.address, row, domain)
}

type Rule = (address: string, row: Row, domain: string) => string | undefined

const ipv4: Rule = (address) =>
  isIPv4(address) ? undefined : 'must be an IPv4 address such as 192.0.2.1'

const ipv6: Rule = (address) =>
  isIPv6(address) && !address.includes('%')
    ? undefined
    : 'must be an IPv6 address such as 2001:db8::1, without zone id'

const hostname: Rule = (address) => {
  const name = address.replace(/\.$/, '')
  const labels = name.split('.')
  if (isIPv4(name) || isIPv6(name) || /^[0-9]+$/.test(labels.at(-1) ?? ''))
    return 'must be a host name, not an address'
  if (name.length > 253 || !labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label)))
    return 'must be a host name such as host.example.net'
  return labels.length === 1
    ? 'must be a full host name such as host.example.net: the registrar takes a single label for a top-level domain'
    : undefined
}

const cname: Rule = (address, row, domain) => {
  const own = row.name === '@' ? domain : `${row.name}.${domain}`
  return address.replace(/\.$/, '') === own
    ? 'must not be the record itself'
    : hostname(address, row, domain)
}

const url: Rule = (address) => {
  if (!/^https?:\/\/[^\s/]/i.test(address) || /\s/.test(address) || !URL.canParse(address)) {
    return 'must be an absolute http or https URL'
  }
  const { username, password } = new URL(address)
  if (username || password) return 'must not contain credentials'
  return address.length > 255 ? 'must have at most 255 characters' : undefined
}

const caa: Rule = (address) => {
  const parts = caaParts(address)
  if (!parts) return 'must be flags, tag and value: 0 issue "ca.example.net"'
  const { flags, tag, value } = parts
  if (flags > 255) return 'must have flags from 0 to 255'
  if (!['issue', 'issuewild', 'iodef'].includes(tag))
    return 'must have the tag issue, issuewild or iodef'
  if (tag === 'iodef') {
    if (!/^(?:mailto:[^\s@]+@[^\s@]+|https?:\/\/[^\s]+)$/.test(value))
      return 'must have a mailto: or http(s) URL for iodef'
  } else if (!isCaaIssueValue(value)) {
    return 'must name a CA, with parameters if any: 0 issue "ca.example.net; validationmethods=dns-01"'
  }
  return address.length > 255 || hasControls(value)
    ? 'must have at most 255 characters, none of them control characters'
    : undefined
}

const txt: Rule = (address) => {
  if ([...address].length > 2500) return 'must have at most 2500 characters'
  return hasControls(address) ? 'must not have control characters' : undefined
}

const rules = new Map<string, Rule>([
  ['A', ipv4],
  ['MXE', ipv4],
  ['AAAA', ipv6],
  ['CNAME', cname],
  ['ALIAS', cname],
  ['NS', hostname],
  ['MX', hostname],
  ['CAA', caa],
  ['TXT', txt],
  ['URL', url],
  ['URL301', url],
  ['FRAME', url],
])

// XML 1.0 excludes most control characters; a lone surrogate is not a character.
const hasControls = (text: string) =>
  /[^\P{Cc}\t]|[\ufffe\uffff]/u.test(text) || !text.isWellFormed()
