import { isIP, isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { toAscii } from './domain-name.ts'
import { decodeName, decodeText, quoteText, type Token } from './zone-file/tokens.ts'

/** The RDATA of a zone file, as the fields of a record; undefined where it is malformed. */
type Rdata = { address: string; mx_pref?: number } | undefined

/** Makes a name of a zone file absolute, without its trailing dot. */
export type Qualify = (name: string) => string

/** Everything that is particular to one type of record. */
interface RecordType {
  /** The address as the registrar stores it. */
  normalize(address: string): string
  /** The stored address in the API's form. */
  show(address: string): string
  /** The stored address modulo what the registrar changes by itself: equal ones are one record. */
  canonicalize(address: string): string
  /** The fault of a normalized address. `owner` is the full name of the record. */
  validate(address: string, owner: string): string | undefined
  /** The fault of a name, relative to the domain, that is valid but not for this type. */
  validateName?(name: string): string | undefined
  /** RDATA in a zone file; undefined where it cannot be expressed. Types without it are printed as comments. */
  print?(record: { address: string; mx_pref?: number }): string | undefined
  /** Reads RDATA. A type without it is a fault in a zone file. */
  parse?(tokens: Token[], qualify: Qualify): Rdata
  /** What RDATA must be. */
  describeRdata?: string
}

const same = (text: string) => text
const plain = { normalize: same, show: same, canonicalize: same }

const withoutDot = (name: string) => name.replace(/\.$/, '')

const oneAddress: Pick<RecordType, 'print' | 'parse' | 'describeRdata'> = {
  print: ({ address }) => address,
  parse: ([address, ...rest]) => (rest.length === 0 && address ? { address: address.text } : undefined),
  describeRdata: 'one address',
}

function parseTarget([target, ...rest]: Token[], qualify: Qualify): Rdata {
  const name = rest.length === 0 && target ? decodeName(target) : undefined
  return name === undefined ? undefined : { address: qualify(name) }
}

const ipv4: RecordType = {
  ...plain,
  validate: (address) => (isIPv4(address) ? undefined : 'must be an IPv4 address such as 192.0.2.1'),
}

const ipv6: RecordType = {
  ...plain,
  ...oneAddress,
  canonicalize: (address) => (isPlainIPv6(address) ? ipaddr.IPv6.parse(address).toRFC5952String() : address),
  validate: (address) =>
    isPlainIPv6(address) ? undefined : 'must be an IPv6 address such as 2001:db8::1, without zone id',
}

const isPlainIPv6 = (address: string) => isIPv6(address) && !address.includes('%')

// The registrar stores targets with a trailing dot, and has dropped MX rows sent without it.
const target: RecordType = {
  normalize: (address) => `${withoutDot(toAscii(address) ?? address)}.`,
  show: withoutDot,
  canonicalize: (address) => withoutDot(toAscii(address) ?? address.toLowerCase()),
  validate: validateTarget,
  print: ({ address }) => `${address}.`,
  parse: parseTarget,
  describeRdata: 'one host name',
}

const { print: _, ...unprinted } = target

function validateTarget(address: string): string | undefined {
  const name = withoutDot(address)
  const labels = name.split('.')
  if (isIP(name) || /^[0-9]+$/.test(labels.at(-1) ?? '')) return 'must be a host name, not an address'
  if (name.length > 253 || !labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label)))
    return 'must be a host name such as host.example.net'
  return labels.length === 1
    ? 'must be a full host name such as host.example.net: the registrar takes a single label for a top-level domain'
    : undefined
}

const validateForeignTarget = (address: string, owner: string) =>
  withoutDot(address) === owner ? 'must not be the record itself' : validateTarget(address)

const redirect: RecordType = {
  ...plain,
  validate(address) {
    if (!/^https?:\/\/[^\s/]/i.test(address) || /[\s<>"]/.test(address) || !URL.canParse(address))
      return 'must be an absolute http or https URL, without spaces, quotes, < and >'
    if (hasControls(address)) return 'must not have control characters'
    const { username, password } = new URL(address)
    if (username || password) return 'must not contain credentials'
    return address.length > 255 ? 'must have at most 255 characters' : undefined
  },
}

/** `flags tag "value"` (RFC 8659, 4.1), with or without the quotes; undefined where it is none. */
function caaParts(address: string) {
  const pattern = /^\s*([0-9]{1,3})\s+([a-zA-Z0-9]+)\s+(?:"([^"]*)"|([^"\s](?:[^"]*[^"\s])?))\s*$/
  const [, flags, tag, quoted, bare] = pattern.exec(address) ?? []
  const value = quoted ?? bare
  if (flags === undefined || tag === undefined || value === undefined) return undefined
  return { flags: Number(flags), tag: tag.toLowerCase(), value }
}

function normalizeCaa(address: string): string {
  const parts = caaParts(address)
  return parts ? `${parts.flags} ${parts.tag} "${parts.value}"` : address
}

function validateCaa(address: string): string | undefined {
  const parts = caaParts(address)
  if (!parts) return 'must be flags, tag and value: 0 issue "ca.example.net"'
  const { flags, tag, value } = parts
  if (flags > 255) return 'must have flags from 0 to 255'
  if (!['issue', 'issuewild', 'iodef'].includes(tag)) return 'must have the tag issue, issuewild or iodef'
  if (tag === 'iodef' && !/^(?:mailto:[^\s@]+@[^\s@]+|https?:\/\/[^\s]+)$/.test(value))
    return 'must have a mailto: or http(s) URL for iodef'
  if (tag !== 'iodef' && !isCaaIssuer(value))
    return 'must name a CA, with parameters if any: 0 issue "ca.example.net; validationmethods=dns-01"'
  // The registrar takes `&quot;` for quotes that a client did not decode.
  return address.length > 255 || hasControls(value) || value.includes('&quot;')
    ? 'must have at most 255 characters, none of them control characters, and no &quot;'
    : undefined
}

// RFC 8659, 4.2: a host name or nothing, then parameters such as `; accounturi=https://…`.
function isCaaIssuer(value: string): boolean {
  const [issuer = '', ...parameters] = value.split(';').map((part) => part.trim())
  const labels = issuer === '' ? [] : issuer.split('.')
  return (
    labels.every((label) => /^(?!-)[a-zA-Z0-9-]{1,63}(?<!-)$/.test(label)) &&
    parameters.every(
      (parameter, index) =>
        /^[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*[ \t]*=[ \t]*[\x21-\x3a\x3c-\x7e]*$/.test(parameter) ||
        // "ca.example.net;" has one empty parameter: common, and without meaning.
        (parameter === '' && index === parameters.length - 1),
    )
  )
}

function parseCaa(tokens: Token[]): Rdata {
  const [flags, tag, value] = tokens.map((token) => decodeText([token.text]))
  return tokens.length === 3 && value !== undefined ? { address: `${flags} ${tag} "${value}"` } : undefined
}

function parseMx([preference, ...rest]: Token[], qualify: Qualify): Rdata {
  const rdata = parseTarget(rest, qualify)
  return rdata && preference && /^[0-9]{1,5}$/.test(preference.text)
    ? { ...rdata, mx_pref: Number(preference.text) }
    : undefined
}

function parseTxt(tokens: Token[]): Rdata {
  const address = decodeText(tokens.map(({ text }) => text))
  return tokens.length > 0 && address !== undefined ? { address } : undefined
}

// XML 1.0 excludes most control characters; a lone surrogate is not a character.
const hasControls = (text: string) => /[^\P{Cc}\t]|[\ufffe\uffff]/u.test(text) || !text.isWellFormed()

const notAtApex = (fault: string) => (name: string) => (name === '@' ? fault : undefined)

/** The types that the registrar's setHosts accepts. */
const types = new Map<string, RecordType>([
  ['A', { ...ipv4, ...oneAddress }],
  ['AAAA', ipv6],
  // No type of DNS, but other providers export it like CNAME.
  ['ALIAS', { ...unprinted, validate: validateForeignTarget }],
  [
    'CAA',
    {
      normalize: normalizeCaa,
      show: same,
      canonicalize: normalizeCaa,
      validate: validateCaa,
      print({ address }) {
        const parts = caaParts(address)
        return parts && `${parts.flags} ${parts.tag} ${quoteText(parts.value)}`
      },
      parse: parseCaa,
      describeRdata: 'flags, a tag and a value',
    },
  ],
  [
    'CNAME',
    {
      ...target,
      validate: validateForeignTarget,
      validateName: notAtApex('must not be @ for a CNAME: use ALIAS at the apex'),
    },
  ],
  [
    'MX',
    {
      ...target,
      print: ({ address, mx_pref }) => `${mx_pref} ${address}.`,
      parse: parseMx,
      describeRdata: 'a preference and a host name',
    },
  ],
  [
    'MXE',
    {
      ...ipv4,
      validateName: (name) => (name === '@' ? undefined : 'must be @ for MXE: it is for the domain itself'),
    },
  ],
  [
    'NS',
    {
      ...target,
      validateName: notAtApex('must not be @ for NS: the nameservers of the domain itself are set at the registrar'),
    },
  ],
  [
    'TXT',
    {
      ...plain,
      validate(address) {
        if (address === '' || [...address].length > 2500) return 'must have 1 to 2500 characters'
        return hasControls(address) ? 'must not have control characters' : undefined
      },
      print: ({ address }) => quoteText(address),
      parse: parseTxt,
      describeRdata: 'a text, in UTF-8 and with valid escapes,',
    },
  ],
  ['URL', redirect],
  ['URL301', redirect],
  ['FRAME', redirect],
])

/** Names of the types, in upper case. */
export const recordTypes: readonly string[] = [...types.keys()]

/** The type of that name in upper case. Any other (SRV made in the panel) can be read, not written. */
export const recordTypeOf = (name: string): RecordType => types.get(name) ?? { ...plain, validate: () => undefined }
