import { isIPv4, isIPv6 } from 'node:net'
import { type Params, readSubmitted, type Submitted } from '../protocol/parameters.ts'
import { ErrorResponse, parameterInvalid } from '../protocol/responses.ts'
import { type Domain, type EmailType, emailTypes, type Host } from './domain.ts'

const maxRecords = 150
const maxTextLength = 2500
const maxTargetLength = 255

type Zone = Pick<Domain, 'emailType' | 'hosts'>

interface Options {
  /** The id of a new row. */
  nextId: () => number
  /** An MX sent with a new preference keeps the old one, as users report of the registrar. */
  keepsMxPref: boolean
}

/**
 * The zone after setHosts: removes rows that were not sent. Rows sent exactly as stored skip validation and keep their
 * id. Does not modify `domain`, so a refusal leaves the zone unchanged.
 */
export function replaceZone(domain: Domain, params: Params, options: Options): Zone {
  const emailType = readEmailType(domain, params)
  const submitted = readSubmitted(params)
  if (submitted.length > maxRecords)
    throw new ErrorResponse('3013288', `Too many records: a domain may have ${maxRecords}`)
  const stored = new Map(domain.hosts.map((host) => [keyOf(host), host]))
  const taken = new Map<string, Host>()
  for (const one of submitted) {
    const host = toHost(one, domain, stored, options)
    // The first of two equal records wins; MX rows of another email type vanish silently.
    if (!taken.has(keyOf(host)) && isKept(host, emailType)) taken.set(keyOf(host), host)
  }
  return { emailType, hosts: [...taken.values()] }
}

function toHost(
  submitted: Submitted,
  domain: Domain,
  stored: Map<string, Host>,
  { nextId, keepsMxPref }: Options,
): Host {
  const old = stored.get(keyOf(submitted))
  if (old && storedForms.has(submitted.type) && isSame(submitted, old)) return { ...old, isDdns: false }
  const entry = readEntry(submitted, domain.name)
  const twin = stored.get(keyOf(entry))
  if (twin && entry.type === 'MX' && keepsMxPref) entry.mxPref = twin.mxPref
  const isUnchanged = twin?.ttl === entry.ttl && twin.mxPref === entry.mxPref
  return isUnchanged ? { ...twin, isDdns: false } : { ...entry, hostId: nextId() }
}

function isSame({ type, ttl, mxPref }: Submitted, old: Host): boolean {
  const samePref = type !== 'MX' || (mxPref ?? '10') === String(old.mxPref)
  return samePref && (ttl ?? '1800') === String(old.ttl)
}

// Without EmailType, FWD survives and every other type is lost.
function readEmailType(domain: Domain, params: Params): EmailType {
  const sent = params.get('EmailType')?.toUpperCase()
  if (sent === undefined) return domain.emailType === 'FWD' ? 'FWD' : 'NONE'
  const known = emailTypes.find((type) => type === sent)
  if (!known) throw parameterInvalid('EmailType', `not one of ${emailTypes.join(', ')}`)
  return known
}

function isKept({ type }: Host, emailType: EmailType): boolean {
  if (type === 'MXE') return emailType === 'MXE'
  return type !== 'MX' || ['MX', 'OX', 'GMAIL'].includes(emailType)
}

function keyOf({ name, type, address }: Pick<Host, 'name' | 'type' | 'address'>): string {
  return JSON.stringify([name.toLowerCase(), type, address])
}

/** Converts a record to its stored form, without an id; throws the registrar's refusal. */
function readEntry(submitted: Submitted, domain: string): Omit<Host, 'hostId'> {
  const { number, name, type, mxPref = '10', ttl = '1800' } = submitted
  const store = storedForms.get(type)
  if (!store) throw parameterInvalid(`RecordType${number}`, `there is no type ${type.slice(0, 20)}`)
  if (!isName(name)) throw parameterInvalid(`HostName${number}`, 'not a host name')
  const address = store(submitted.address)
  if (address === undefined) {
    throw parameterInvalid(`Address${number}`, `the ${type} record has an incorrect value`)
  }
  return {
    name: type === 'MXE' ? domain : name,
    type,
    address,
    mxPref: type === 'MX' ? readNumber(`MXPref${number}`, mxPref, [0, 65_535]) : 10,
    ttl: readNumber(`TTL${number}`, ttl, [60, 60_000]),
    isDdns: false,
  }
}

// A value in its stored form; undefined if it is refused.
type StoredForm = (address: string) => string | undefined

const when =
  (isRight: (address: string) => boolean): StoredForm =>
  (address) =>
    isRight(address) ? address : undefined

const target: StoredForm = (address) => {
  const absolute = address.endsWith('.') ? address : `${address}.`
  return isTarget(absolute) ? absolute : undefined
}

const location = when((address) => address.length <= maxTargetLength && /^[a-z]+:\/\/[^\s<>"]+$/i.test(address))

const storedForms = new Map<string, StoredForm>([
  ['A', when(isIPv4)],
  ['AAAA', when((address) => isIPv6(address) && !address.includes('%'))],
  ['ALIAS', target],
  ['CAA', readAuthorization],
  ['CNAME', target],
  ['MX', target],
  ['MXE', when(isIPv4)],
  ['NS', target],
  ['TXT', when((address) => [...address].length <= maxTextLength && !hasControl(address))],
  ['URL', location],
  ['URL301', location],
  ['FRAME', location],
])

// RFC 8659, 4.2: the value may carry parameters. It always comes back quoted.
function readAuthorization(address: string): string | undefined {
  const pattern = /^(\d{1,3})\s+(issue|issuewild|iodef)\s+(?:"([^"]*)"|([^"\s][^"]*))$/
  const [, flags, tag, quoted, bare] = pattern.exec(address.trim()) ?? []
  const value = quoted ?? bare
  if (value === undefined || value.includes('&quot;') || Number(flags) > 255) return undefined
  if (tag === 'iodef' && !/^(mailto:|https?:\/\/)/.test(value)) return undefined
  return `${Number(flags)} ${tag} "${value}"`
}

function readNumber(parameter: string, text: string, [min, max]: [number, number]): number {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : -1
  if (value < min || value > max) throw parameterInvalid(parameter, `not a number from ${min} to ${max}`)
  return value
}

function isName(name: string): boolean {
  if (name === '@' || name === '*') return true
  const relative = name.replace(/^\*\./, '').replace(/\.$/, '')
  return name.length <= 255 && relative.split('.').every(isLabel)
}

function isTarget(absolute: string): boolean {
  const labels = absolute.slice(0, -1).split('.')
  const isNumber = /^\d+$/.test(labels.at(-1) ?? '')
  return absolute.length <= maxTargetLength + 1 && !isNumber && labels.every(isLabel)
}

// Letters of any script and underscores pass: the registrar is lenient.
function isLabel(label: string): boolean {
  return /^(?!-)[\p{L}\p{N}_-]{1,63}(?<!-)$/u.test(label)
}

// Not representable in XML: C0 controls except white space, two noncharacters, unpaired surrogates.
function hasControl(text: string): boolean {
  return /[[\p{Cc}--[\t\n\r\x7f-\x9f]]\ufffe\uffff\p{Cs}]/v.test(text)
}
