import { isDeepStrictEqual } from 'node:util'
import { type Fault, validationFailed } from '@domains-and-files/http'
import type { ReplaceEdit } from '../edits/zone-edit.ts'
import { defaultTtl, faultsOf, type HostRecord, type RecordInput } from '../record.ts'
import { recordTypeOf } from '../record-types.ts'
import { toRecords, type Zone } from '../zone.ts'
import { decodeName, decodeText, type Entry, quoteText, readEntries, type Token } from './tokens.ts'

/** What a zone file says: records with their line numbers, and what was skipped or adapted. */
interface ZoneFile extends Omit<ReplaceEdit, 'kind'> {
  lines: number[]
  warnings: string[]
}

/**
 * Parses a zone file (RFC 1035) of that domain.
 * @throws {HttpError} validation_failed with each fault at `/line/12`.
 */
export const parseZoneFile = (text: string, domain: string): ZoneFile => readZoneFile(text, domain).finish()

function readZoneFile(text: string, domain: string) {
  const { entries, faults } = readEntries(text)
  const parser = new ZoneFileParser(domain, faults)
  for (const entry of entries) parser.read(entry)
  return parser
}

class ZoneFileParser {
  readonly #domain: string
  readonly #faults: Fault[]
  readonly file: ZoneFile = { records: [], lines: [], emailType: undefined, warnings: [] }
  #origin: string
  #owner: string | undefined
  /** Seconds, of $TTL (RFC 2308, 4). */
  #defaultTtl: number | undefined
  /** Seconds, of the last record that has a TTL (RFC 1035, 5.1). */
  #lastTtl: number | undefined

  constructor(domain: string, faults: Fault[]) {
    this.#domain = domain
    this.#origin = domain
    this.#faults = faults
  }

  read(entry: Entry) {
    const [first] = entry.tokens
    if (!first) return this.#comment(entry)
    const directive = first.quoted || entry.indented ? undefined : first.text.toUpperCase()
    if (directive?.startsWith('$')) return this.#directive(directive, entry)
    this.#record(entry)
  }

  finish(): ZoneFile {
    const { records, lines } = this.file
    if (this.#faults.length === 0) return this.file
    // A malformed line fails the file in any case, so record faults are reported, too, even if the zone has the records.
    records.forEach((record, index) => {
      const [fault] = faultsOf(record, this.#domain)
      if (fault) this.#fault(lines[index] ?? 0, fault[1])
    })
    throw validationFailed(this.#faults.sort((a, b) => lineOf(a) - lineOf(b)))
  }

  #comment({ line, comment = '' }: Entry) {
    const [first, kind, word] = comment.trim().split(/[ \t]+/, 3)
    if (first !== marker) return
    const record = kind === 'record' ? readRecord(comment) : undefined
    if (record) this.#add(record, line)
    else if (kind === 'email-type' && word)
      Object.assign(this.file, { emailType: word.toUpperCase(), emailTypePath: `/line/${line}` })
    else this.#fault(line, `must be such as: ; ${marker} email-type MX, or record www 60 URL "https://example.net/"`)
  }

  #directive(directive: string, { line, tokens }: Entry) {
    const argument = tokens.length === 2 ? tokens[1] : undefined
    const name = argument && directive === '$ORIGIN' ? decodeName(argument) : undefined
    const ttl = argument && directive === '$TTL' ? parseTtl(argument.text) : undefined
    if (name !== undefined) this.#origin = this.#qualify(name)
    else if (ttl !== undefined) this.#defaultTtl = ttl
    else this.#fault(line, 'must be $ORIGIN with a domain name or $TTL with seconds: write the records of others out')
  }

  #record({ line, indented, tokens }: Entry) {
    const rest = [...tokens]
    if (!indented) this.#owner = this.#readOwner(rest.shift(), line)
    else if (this.#owner === undefined) this.#fault(line, 'has no name, and no record is before it')
    const ttl = this.#readTtlAndClass(rest)
    const type = rest.shift()?.text.toUpperCase()
    if (type === undefined) return this.#fault(line, 'has no record type')
    if (this.#skips(type, rest, line) || this.#owner === undefined) return
    const { parse, describeRdata } = recordTypeOf(type)
    if (!parse) return this.#fault(line, `has the type ${type.slice(0, 40)}, which the registrar cannot store`)
    const rdata = parse(rest, (name) => this.#qualify(name))
    if (!rdata) return this.#fault(line, `must have ${describeRdata} after its type`)
    const name = this.#relative(this.#owner)
    if (name === undefined) return this.#fault(line, `is outside of ${this.#domain}`)
    this.#add({ name, type, ...rdata, ...this.#boundTtl(ttl, line) }, line)
  }

  #readOwner(token: Token | undefined, line: number): string | undefined {
    const name = token && !token.quoted ? decodeName(token) : undefined
    if (name === undefined) this.#fault(line, 'has a name that the registrar cannot store')
    return name === undefined ? undefined : this.#qualify(name)
  }

  // TTL and class, both optional, come in either order (RFC 1035, 5.1).
  #readTtlAndClass(rest: Token[]): number | undefined {
    let ttl: number | undefined
    for (let next = rest[0]; next && !next.quoted; next = rest[0]) {
      const text = next.text.toUpperCase()
      const seconds = ttl === undefined ? parseTtl(text) : undefined
      if (seconds === undefined && text !== 'IN') break
      ttl ??= seconds
      rest.shift()
    }
    this.#lastTtl = ttl ?? this.#lastTtl
    return ttl ?? this.#defaultTtl ?? this.#lastTtl
  }

  // The nameservers of the domain itself are set at the registrar, which makes the SOA.
  #skips(type: string, rdata: Token[], line: number): boolean {
    if (type === 'SOA') this.#lastTtl ??= parseTtl(rdata[6]?.text ?? '')
    else if (type !== 'NS' || this.#owner !== this.#domain) return false
    this.file.warnings.push(`line ${line}: ${type} of the domain itself is skipped, it is set at the registrar`)
    return true
  }

  // Other providers allow a day or a second: neither is a reason to refuse their export.
  #boundTtl(ttl: number | undefined, line: number): { ttl?: number } {
    if (ttl === undefined) return {}
    const bounded = Math.min(Math.max(ttl, 60), 60_000)
    if (bounded !== ttl)
      this.file.warnings.push(`line ${line}: TTL ${ttl} is set to ${bounded}, 60 to 60000 is possible`)
    return { ttl: bounded }
  }

  #qualify(name: string): string {
    const lower = name.toLowerCase()
    if (lower === '@') return this.#origin
    if (lower.endsWith('.')) return lower.slice(0, -1)
    return this.#origin === '' ? lower : `${lower}.${this.#origin}`
  }

  #relative(name: string): string | undefined {
    if (name === this.#domain) return '@'
    return name.endsWith(`.${this.#domain}`) ? name.slice(0, -this.#domain.length - 1) : undefined
  }

  #add(record: RecordInput, line: number) {
    this.file.records.push(record)
    this.file.lines.push(line)
  }

  #fault(line: number, message: string) {
    this.#faults.push({ path: `/line/${line}`, message })
  }
}

const units: Record<string, number> = { W: 604_800, D: 86_400, H: 3_600, M: 60, S: 1 }

/** Seconds, of `3600` or BIND's `1h30m`; at most 2^31 - 1 (RFC 2181, 8). */
function parseTtl(text: string): number | undefined {
  const upper = text.toUpperCase()
  if (!/^(?:[0-9]{1,10}|(?:[0-9]{1,10}[WDHMS])+)$/.test(upper)) return undefined
  const parts = [...upper.matchAll(/([0-9]+)([WDHMS]?)/g)]
  const seconds = parts.reduce((sum, [, digits, unit = '']) => sum + Number(digits) * (units[unit] ?? 1), 0)
  return seconds < 2 ** 31 ? seconds : undefined
}

const lineOf = ({ path }: Fault) => Number(path.slice('/line/'.length))

/**
 * A zone as a zone file (RFC 1035), pure ASCII. Records that DNS cannot express are comments; parsed again, the file
 * gives the same records and email type. It has no SOA and no NS of the domain itself: the registrar shows neither.
 */
export function printZoneFile(zone: Zone): string {
  const { emailType = '' } = zone
  return [
    `; ${zone.domain}, without SOA and NS of the domain itself.`,
    '; "domain-service" comments are settings and records that DNS does not have.',
    `$ORIGIN ${zone.domain}.`,
    `$TTL ${defaultTtl}`,
    ...(/^[A-Z0-9]+$/.test(emailType) ? [`; ${marker} email-type ${emailType}`] : []),
    ...toRecords(zone).map((record) => printRecord(record, zone.domain) ?? annotateRecord(record)),
    '',
  ].join('\n')
}

// Undefined where DNS has no such record, or would not give it back as it is.
function printRecord(record: HostRecord, domain: string): string | undefined {
  const rdata = recordTypeOf(record.type).print?.(record)
  if (rdata === undefined) return undefined
  if (faultsOf(record, domain).some(([field]) => field !== 'ttl')) return undefined
  const line = `${record.name}\t${record.ttl}\tIN\t${record.type}\t${rdata}`
  const { id: _, ...faithful } = record
  return isDeepStrictEqual(readZoneFile(line, domain).file.records, [faithful]) ? line : undefined
}

// What DNS cannot express, as comments that only this service reads:
//   ; domain-service email-type FWD
//   ; domain-service record www 1800 URL "https://example.net/"

const marker = 'domain-service'

/** Prints a record of any kind as a comment, to the byte. */
function annotateRecord({ name, type, address, ttl, mx_pref }: RecordInput): string {
  const plain = /^[A-Za-z0-9@_*.-]+$/.test(name) ? name : quoteText(name)
  const words = [plain, ttl, type, quoteText(address), ...(mx_pref === undefined ? [] : [mx_pref])]
  return `; ${marker} record ${words.join(' ')}`
}

/** The record of such a comment, whose address is in quotes; undefined where it is malformed. */
function readRecord(comment: string): RecordInput | undefined {
  const { entries, faults } = readEntries(comment)
  const [, , owner, ttl, type, ...rdata] = entries[0]?.tokens ?? []
  const [preference, ...more] = rdata.filter(({ quoted }) => !quoted)
  const [name, address] = [owner ? [owner] : [], rdata.filter(({ quoted }) => quoted)].map((tokens) =>
    decodeText(tokens.map(({ text }) => text)),
  )
  if (faults.length > 0 || more.length > 0 || !name || !ttl || !type || address === undefined) return undefined
  if (![ttl, preference ?? ttl].every(({ text }) => /^[0-9]{1,9}$/.test(text))) return undefined
  const mxPref = preference ? { mx_pref: Number(preference.text) } : {}
  return { name, type: type.text, address, ttl: Number(ttl.text), ...mxPref }
}
