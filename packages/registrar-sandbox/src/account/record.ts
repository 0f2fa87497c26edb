import { isIPv4, isIPv6 } from 'node:net'
import { parameterInvalid, parameterMissing } from '../commands/errors.ts'
import type { Params } from '../commands/parameters.ts'
import type { Host } from './domain.ts'

const fields = ['HostName', 'RecordType', 'Address', 'MXPref', 'TTL']
const longestText = 2500
const longestTarget = 255

/** One record as a caller sent it. The number says which of `HostName1`, `HostName2`, … it was. */
export interface Submitted {
  number: number
  name: string
  type: string
  address: string
  mxPref: string | undefined
  ttl: string | undefined
}

/** What the registrar keeps of a record: all of a host but its id and what the panel adds. */
export type Entry = Pick<Host, 'name' | 'type' | 'address' | 'mxPref' | 'ttl'>

/** Collects the numbered parameters of setHosts, in the order of their numbers. */
export function readSubmitted(params: Params): Submitted[] {
  return params.indexes(fields).map((number) => ({
    number,
    name: readName(params, number),
    type: params.require(`RecordType${number}`).toUpperCase(),
    address: params.require(`Address${number}`),
    mxPref: params.get(`MXPref${number}`),
    ttl: params.get(`TTL${number}`),
  }))
}

/** Makes a record what it will be stored as, or refuses it in the registrar's place. */
export function readEntry(submitted: Submitted, domain: string): Entry {
  const { number, name, type } = submitted
  const store = forms.get(type)
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

/** Whether the registrar takes rows of this type at all. */
export function isKnownType(type: string): boolean {
  return forms.has(type)
}

// A value in its stored form; undefined where it is refused.
type Form = (address: string) => string | undefined

const when =
  (isRight: (address: string) => boolean): Form =>
  (address) =>
    isRight(address) ? address : undefined

const target: Form = (address) => {
  const absolute = address.endsWith('.') ? address : `${address}.`
  return isTarget(absolute) ? absolute : undefined
}

const location = when(
  (address) => address.length <= longestTarget && /^[a-z]+:\/\/[^\s<>"]+$/i.test(address),
)

const forms = new Map<string, Form>([
  ['A', when(isIPv4)],
  ['AAAA', when((address) => isIPv6(address) && !address.includes('%'))],
  ['ALIAS', target],
  ['CAA', readAuthorization],
  ['CNAME', target],
  ['MX', target],
  ['MXE', when(isIPv4)],
  ['NS', target],
  ['TXT', when((address) => address.length <= longestText && !hasControl(address))],
  ['URL', location],
  ['URL301', location],
  ['FRAME', location],
])

// The value always comes back in quotes, however it was sent.
function readAuthorization(address: string): string | undefined {
  const pattern = /^(\d{1,3})\s+(issue|issuewild|iodef)\s+(?:"([^"&\s]*)"|([^"&\s]+))$/
  const [, flags, tag, quoted, bare] = pattern.exec(address.trim()) ?? []
  const value = quoted ?? bare
  if (value === undefined || Number(flags) > 255) return undefined
  if (tag === 'iodef' && !/^(mailto:|https?:\/\/)/.test(value)) return undefined
  return `${Number(flags)} ${tag} "${value}"`
}

function readName(params: Params, number: number): string {
  const parameter = `HostName${number}`
  if (!params.has(parameter)) throw parameterMissing(parameter)
  return (params.get(parameter) ?? '@').toLowerCase()
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
  return absolute.length <= longestTarget + 1 && !isNumber && labels.every(isLabel)
}

// Letters of any script and underscores pass here: the registrar is no stricter than it must be.
function isLabel(label: string): boolean {
  return /^(?!-)[\p{L}\p{N}_-]{1,63}(?<!-)$/u.test(label)
}

// XML has no place for these: C0 controls but white space, two noncharacters, halves of surrogate pairs.
function hasControl(text: string): boolean {
  return /[[\p{Cc}--[\t\n\r\x7f-\x9f]]\ufffe\uffff\p{Cs}]/v.test(text)
}
