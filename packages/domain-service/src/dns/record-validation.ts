import { isIPv4, isIPv6 } from 'node:net'
import { toAscii } from './domain-name.ts'
import { caaParts, defaultMxPref, defaultTtl, isWritable, type Row, recordTypes } from './record.ts'

/** A record as a caller wrote it. */
export interface RecordInput {
  name: string
  type: string
  address: string
  ttl?: number | undefined
  mx_pref?: number | undefined
}

type Field = 'name' | 'type' | 'address' | 'ttl' | 'mx_pref'

/** What must be, by the field at fault. */
export type FieldFault = [field: Field, message: string]

/** The row to send for a draft, and all that today's rules have against it (then the row is not to be sent). */
export function toRow(draft: RecordInput, domain: string): { row: Row; objections: FieldFault[] } {
  const type = draft.type.toUpperCase()
  const name = toAscii(draft.name) ?? draft.name.toLowerCase()
  const address = normalAddress(type, draft.address)
  const row = {
    name: name === '' ? '@' : name,
    type,
    address,
    ttl: String(draft.ttl ?? defaultTtl),
    mxPref: String(draft.mx_pref ?? defaultMxPref),
    dynamic: false,
  }
  const said = [
    ['name', objectToName(name, domain)],
    ['type', isWritable(type) ? undefined : `must be one of ${recordTypes.join(', ')}`],
    ['address', objectToAddress(row, domain)],
    ['ttl', isBetween(draft.ttl, 60, 60_000) ? undefined : 'must be between 60 and 60000'],
    ['mx_pref', objectToMxPref(type, draft.mx_pref)],
    ['name', objectToPlace(type, name)],
  ] as const
  return {
    row,
    objections: said.flatMap(([field, message]) => (message ? [[field, message]] : [])),
  }
}

function normalAddress(type: string, address: string): string {
  if (type === 'CAA') {
    const parts = caaParts.exec(address)
    return parts
      ? `${Number(parts[1])} ${parts[2]?.toLowerCase()} "${parts[3] ?? parts[4]}"`
      : address
  }
  if (!['CNAME', 'ALIAS', 'NS', 'MX'].includes(type)) return address
  // With its trailing dot a target is sent as the registrar keeps it; without, an MX has been known to vanish.
  return `${(toAscii(address) ?? address).replace(/\.$/, '')}.`
}

function objectToName(name: string, domain: string): string | undefined {
  if (name === '@') return undefined
  if (name === '') return 'is required: write @ for the domain itself'
  const bare = name.replace(/\.$/, '')
  if (bare === domain) return `is the domain itself: write @`
  if (bare.endsWith(`.${domain}`))
    return `must not end in the domain: write ${bare.slice(0, -domain.length - 1)}`
  const labels = name.split('.')
  if (!labels.every((label, at) => isLabel(label) || (label === '*' && at === 0))) {
    return 'must be labels of a-z, 0-9, _ and - (1 to 63 each, no - at an end), * only as the whole first one'
  }
  if (name.length > 60) return 'must have at most 60 characters'
  return name.length + 1 + domain.length > 253
    ? 'must have at most 253 characters with the domain'
    : undefined
}

function objectToPlace(type: string, name: string): string | undefined {
  if (name !== '@')
    return type === 'MXE' ? 'must be @ for MXE: it is for the domain itself' : undefined
  if (type === 'CNAME') return 'must not be @ for a CNAME: use ALIAS at the apex'
  return type === 'NS'
    ? 'must not be @ for NS: the nameservers of the domain itself are set at the registrar'
    : undefined
}

function objectToMxPref(type: string, pref: number | undefined): string | undefined {
  if (pref === undefined) return undefined
  if (type !== 'MX') return 'is for MX records only: leave it out'
  return isBetween(pref, 0, 65_535) ? undefined : 'must be between 0 and 65535'
}

function objectToAddress(row: Row, domain: string): string | undefined {
  const rule = addressRules[row.type]
  if (!rule) return undefined
  if (row.address === '') return 'is required'
  return rule(row.address, row, domain)
}

type Rule = (address: string, row: Row, domain: string) => string | undefined

const ipv4: Rule = (address) =>
  isIPv4(address) ? undefined : 'must be an IPv4 address such as 192.0.2.1'

const hostname: Rule = (address) => {
  const name = address.replace(/\.$/, '')
  const labels = name.split('.')
  if (isIPv4(name) || isIPv6(name) || /^[0-9]+$/.test(labels.at(-1) ?? ''))
    return 'must be a host name, not an address'
  if (name.length > 253 || !labels.every(isLabel))
    return 'must be a host name such as host.example.net'
  return undefined
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
  if (username || password) return 'must not carry credentials'
  return address.length > 255 ? 'must have at most 255 characters' : undefined
}

const caa: Rule = (address) => {
  const [, flags, tag, value] = /^([0-9]{1,3}) ([a-z0-9]+) "([^"]*)"$/.exec(address) ?? []
  if (flags === undefined || tag === undefined || value === undefined)
    return 'must be flags, tag and value: 0 issue "ca.example.net"'
  if (Number(flags) > 255) return 'must have flags from 0 to 255'
  if (!['issue', 'issuewild', 'iodef'].includes(tag))
    return 'must have the tag issue, issuewild or iodef'
  if (tag === 'iodef' && !/^(?:mailto:[^\s@]+@[^\s@]+|https?:\/\/[^\s]+)$/.test(value)) {
    return 'must have a mailto: or http(s) URL for iodef'
  }
  return address.length > 255 || hasControls(value)
    ? 'must have at most 255 plain characters'
    : undefined
}

const txt: Rule = (address) => {
  if ([...address].length > 2500) return 'must have at most 2500 characters'
  return hasControls(address) ? 'must not have control characters' : undefined
}

const addressRules: Record<string, Rule> = {
  A: ipv4,
  MXE: ipv4,
  AAAA: (address) =>
    isIPv6(address) && !address.includes('%')
      ? undefined
      : 'must be an IPv6 address such as 2001:db8::1, without zone id',
  CNAME: cname,
  ALIAS: cname,
  NS: hostname,
  MX: hostname,
  CAA: caa,
  TXT: txt,
  URL: url,
  URL301: url,
  FRAME: url,
}

const isLabel = (label: string) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label)

// XML carries hardly any control characters, and half a surrogate pair is no character.
const hasControls = (text: string) =>
  /[^\P{Cc}\t]|[\ufffe\uffff]/u.test(text) || !text.isWellFormed()

const isBetween = (value: number | undefined, min: number, max: number) =>
  value === undefined || (value >= min && value <= max)
