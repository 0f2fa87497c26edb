import { isIPv4, isIPv6 } from 'node:net'
import { parameterInvalid } from '../protocol/errors.ts'
import type { Submitted } from '../protocol/parameters.ts'
import type { Host } from './domain.ts'

const maxTextLength = 2500
const maxTargetLength = 255

/** A record as stored: a host without its id and what the panel adds. */
export type Entry = Pick<Host, 'name' | 'type' | 'address' | 'mxPref' | 'ttl'>

/** Converts a record to its stored form; throws the registrar's refusal. */
export function readEntry(submitted: Submitted, domain: string): Entry {
  const { number, name, type } = submitted
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
    mxPref: type === 'MX' ? readPreference(submitted) : 10,
    ttl: readTtl(submitted),
  }
}

/** Whether setHosts accepts rows of this type. */
export function isKnownType(type: string): boolean {
  return storedForms.has(type)
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

const location = when(
  (address) => address.length <= maxTargetLength && /^[a-z]+:\/\/[^\s<>"]+$/i.test(address),
)

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

function readPreference({ number, mxPref = '10' }: Submitted): number {
  if (!/^\d{1,5}$/.test(mxPref) || Number(mxPref) > 65_535) {
    throw parameterInvalid(`MXPref${number}`, 'not a number from 0 to 65535')
  }
  return Number(mxPref)
}

function readTtl({ number, ttl = '1800' }: Submitted): number {
  if (!/^\d{1,5}$/.test(ttl) || Number(ttl) < 60 || Number(ttl) > 60_000) {
    throw parameterInvalid(`TTL${number}`, 'not a number from 60 to 60000')
  }
  return Number(ttl)
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
