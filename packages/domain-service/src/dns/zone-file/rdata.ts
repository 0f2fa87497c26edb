import { isIP } from 'node:net'
import type { Token } from './entries.ts'
import { decodeText } from './escapes.ts'

/** The address of a record, and its MX preference, as the API has them; or what is wrong, as a text. */
export type Rdata = { address: string; mx_pref?: number } | string

/** Makes a name of the file absolute, without its trailing dot. */
export type Qualify = (name: string) => string

/** Reads the RDATA of a record; undefined for a type that a zone file cannot give to the registrar. */
export function readRdata(type: string, tokens: Token[], qualify: Qualify): Rdata | undefined {
  return readers.get(type)?.(tokens, qualify)
}

/** The text of a name; undefined where it is malformed or has a dot within a label, which the registrar cannot store. */
export const decodeName = ({ text }: Token): string | undefined =>
  /\\(?:\.|046)/.test(text) ? undefined : decodeText([text])

type Reader = (tokens: Token[], qualify: Qualify) => Rdata

const readAddress: Reader = (tokens) => {
  const [address] = tokens
  return tokens.length === 1 && address && isIP(address.text)
    ? { address: address.text }
    : 'must have one address after its type'
}

const readTarget: Reader = (tokens, qualify) => {
  const [target] = tokens
  const name = tokens.length === 1 && target ? decodeName(target) : undefined
  return name === undefined ? 'must have one host name after its type' : { address: qualify(name) }
}

const readMx: Reader = (tokens, qualify) => {
  const [preference, ...rest] = tokens
  if (!preference || !/^[0-9]{1,5}$/.test(preference.text) || rest.length !== 1)
    return 'must have a preference and a host name after its type'
  const target = readTarget(rest, qualify)
  return typeof target === 'string' ? target : { ...target, mx_pref: Number(preference.text) }
}

const readTxt: Reader = (tokens) => {
  if (tokens.length === 0) return 'must have a text after its type'
  const text = decodeText(tokens.map((token) => token.text))
  return text === undefined
    ? 'has an escape or an octet that is not UTF-8: the registrar stores characters only'
    : { address: text }
}

const readCaa: Reader = (tokens) => {
  const parts = tokens.map((token) => decodeText([token.text]))
  const [flags, tag, value] = parts
  return parts.length === 3 && flags !== undefined && tag !== undefined && value !== undefined
    ? { address: `${flags} ${tag} "${value}"` }
    : 'must have flags, a tag and a value after its type'
}

// ALIAS is no type of DNS, but other providers export it like CNAME.
const readers = new Map<string, Reader>([
  ['A', readAddress],
  ['AAAA', readAddress],
  ['CNAME', readTarget],
  ['ALIAS', readTarget],
  ['NS', readTarget],
  ['MX', readMx],
  ['TXT', readTxt],
  ['CAA', readCaa],
])
