import { hash } from 'node:crypto'
import { emailTypeConflict, emailTypeUnknown } from '../errors.ts'
import { type HostRecord, type NamedRrset, ownerOf, parseRow, type RecordInput, type Row } from './record.ts'

/** A zone as it was read, never mutated. `emailType` is undefined where the registrar's answer has none: unknown. */
export interface Zone {
  readonly domain: string
  readonly usesRegistrarDns: boolean
  readonly emailType: string | undefined
  readonly rows: Row[]
}

/** The records of a zone by name (`@` first), type, address. Cached by zone object. */
export const toRecords = (zone: Zone): HostRecord[] =>
  sortedRecords.getOrInsertComputed(zone, ({ rows }) => rows.map((row) => parseRow(row).record).sort(compareRecords))

const sortedRecords = new WeakMap<Zone, HostRecord[]>()

/** The strong ETag of a zone, over all records and the email type. Cached by zone object. */
export const etagOf = (zone: Zone): string =>
  etags.getOrInsertComputed(zone, ({ usesRegistrarDns, emailType = null }) => {
    const state = [usesRegistrarDns, emailType, toRecords(zone)]
    return `"${hash('sha256', JSON.stringify(state), 'base64url').slice(0, 32)}"`
  })

const etags = new WeakMap<Zone, string>()

/** Multiset difference by content: `rows` without one row for each equal row of `others`. */
export function subtract(rows: Row[], others: Row[]): Row[] {
  const counts = new Map<string, number>()
  for (const row of others) {
    const content = parseRow(row).content
    counts.set(content, (counts.get(content) ?? 0) + 1)
  }
  return rows.filter((row) => {
    const content = parseRow(row).content
    const left = counts.get(content) ?? 0
    counts.set(content, left - 1)
    return left <= 0
  })
}

/** Whether two lists have the same rows by content, in any order. */
export const isSameRows = (rows: Row[], others: Row[]) =>
  rows.length === others.length && subtract(rows, others).length === 0

/** Whether two lists have no row in common, by content. */
export const isDisjoint = (rows: Row[], others: Row[]) => subtract(rows, others).length === rows.length

/** The rows that the registrar keeps: of those with one key and one spelling of the address, the first. */
export function distinctRows(rows: Row[]): Row[] {
  const same = Map.groupBy(rows, (row) => `${parseRow(row).key} ${parseRow(row).record.address}`)
  const distinct = [...same.values()].flatMap(([first]) => first ?? [])
  return distinct.length === rows.length ? rows : distinct
}

/** Whether a row is one of those with which the registrar fills an empty zone. */
export const isParking = (row: Row, domain: string) =>
  (row.type === 'CNAME' && row.name === 'www' && /^parkingpage\.namecheap\.com\.?$/i.test(row.address)) ||
  (row.type === 'URL' &&
    row.name === '@' &&
    [`http://www.${domain}/?from=@`, `http://www.${domain}?from=@`].includes(row.address.toLowerCase()))

function compareRecords(a: HostRecord, b: HostRecord): number {
  if (a.name !== b.name && (a.name === '@' || b.name === '@')) return a.name === '@' ? -1 : 1
  for (const field of ['name', 'type', 'address', 'mx_pref', 'ttl'] as const) {
    const [one, other] = [a[field] ?? 0, b[field] ?? 0]
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}

export interface Delta {
  added: Row[]
  removed: Row[]
  /** The new email type, if it changes. */
  emailType?: string | undefined
}

/** Between two zones of one domain. A zone without email type says nothing about it. */
export const differenceOf = (before: Zone, after: Zone): Delta => ({
  added: subtract(after.rows, before.rows),
  removed: subtract(before.rows, after.rows),
  emailType: after.emailType === before.emailType ? undefined : after.emailType,
})

/** What a change adds to a zone and removes from it, as records, and how many rows it keeps. */
export const changesOf = ({ added, removed, after }: Delta & { after: Zone }) => ({
  added: added.map((row) => parseRow(row).record),
  removed: removed.map((row) => parseRow(row).record),
  kept: after.rows.length - added.length,
})

export const isEmptyDelta = ({ added, removed, emailType }: Delta) =>
  added.length + removed.length === 0 && emailType === undefined

/** Whether a zone has what a delta adds, and nothing of what it removes. */
export const hasDelta = ({ rows }: Zone, { added, removed }: Pick<Delta, 'added' | 'removed'>) =>
  subtract(added, rows).length === 0 && isDisjoint(removed, rows)

/** The part of a delta that concerns these rows; the email type stays. */
export const filterDelta = ({ added, removed, emailType }: Delta, isIn: (row: Row) => boolean): Delta => ({
  added: added.filter(isIn),
  removed: removed.filter(isIn),
  emailType,
})

/** The registrar keeps one row of each key, so an added row takes the place of one that differs in its TTL. */
export function withDelta(zone: Zone, delta: Delta): Zone {
  const keys = new Set(delta.added.map((row) => parseRow(row).key))
  const kept = subtract(zone.rows, delta.removed)
  return {
    ...zone,
    emailType: delta.emailType ?? zone.emailType,
    rows: [...kept.filter((row) => !keys.has(parseRow(row).key)), ...delta.added],
  }
}

/** All records of one name and type. `ttl` is the lowest of theirs. */
export interface Rrset extends NamedRrset {
  ttl: number
  values: string[]
  mixed_ttl?: true
}

/** The RRsets of a zone, in the order of its records. */
export const toRrsets = (zone: Zone): Rrset[] =>
  [...Map.groupBy(toRecords(zone), ({ name }) => name)].flatMap(([name, named]) =>
    [...Map.groupBy(named, ({ type }) => type)].map(([type, records]) => toRrset({ name, type }, records)),
  )

/** The RRset of that name and type, if the zone has one. */
export const findRrset = (zone: Zone, name: string, type: string): Rrset | undefined =>
  toRrsets(zone).find((each) => each.name === ownerOf(name) && each.type === type.toUpperCase())

function toRrset(named: NamedRrset, records: HostRecord[]): Rrset {
  const ttls = new Set(records.map(({ ttl }) => ttl))
  const isMixed = ttls.size > 1 && { mixed_ttl: true as const }
  const values = records.map(({ address, mx_pref }) => (mx_pref === undefined ? address : `${mx_pref} ${address}`))
  return { ...named, ttl: Math.min(...ttls), values, ...isMixed }
}

/** The fields of a value of an RRset. That of MX has a preference before its host name; without one it is malformed. */
export function readValue(type: string, value: string): Pick<RecordInput, 'address' | 'mx_pref'> {
  const [, preference, address] = (type.toUpperCase() === 'MX' && /^([0-9]{1,5})[ \t]+(\S+)$/.exec(value.trim())) || []
  return preference && address ? { address, mx_pref: Number(preference) } : { address: value }
}

export const emailTypes = ['NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL'] as const

/** A zone as it was, and its rows to be. */
interface Rewrite {
  before: Pick<Zone, 'emailType' | 'rows'>
  rows: Row[]
}

/** The fault of an email type that a client requests, if it contradicts the records. */
export function validateEmailType(requested: string, { before, rows }: Rewrite): string | undefined {
  // The present type is accepted as it is, but not with a first MX (MXE): the registrar would drop that silently.
  if (requested === before.emailType && !firstMail({ before, rows })) return undefined
  const allowed = allowedBeside[mailOf(rows) ?? 'other']
  return allowed.includes(requested) ? undefined : `must be one of ${allowed.join(', ')} beside these records`
}

const allowedBeside = { MX: ['MX', 'OX', 'GMAIL'], MXE: ['MXE'], other: ['NONE', 'FWD', 'OX', 'GMAIL'] }

/**
 * The email type to send with a changed zone where the client requests none. The registrar replaces it with every
 * write, and stores MX rows only beside a type that allows them. The present type is kept, except: a first MX (MXE) in a
 * NONE zone makes it MX (MXE); removing the last one makes it NONE. OX and GMAIL, whose zones contain MX rows of their
 * provider, are never left.
 * @throws {HttpError} email_type_conflict where the client must choose: a first MX in a FWD zone would end e-mail
 * forwarding, and an unknown type is never guessed.
 */
export function keepEmailType({ before, rows }: Rewrite): string {
  const { emailType } = before
  if (emailType === undefined) throw emailTypeUnknown()
  const isMail = emailType === 'MX' || emailType === 'MXE'
  if (emailType === 'NONE' || (isMail && (mailOf(rows) || mailOf(before.rows)))) return mailOf(rows) ?? 'NONE'
  const first = firstMail({ before, rows })
  if (!first || allowedBeside[first].includes(emailType)) return emailType
  throw emailTypeConflict(
    `The zone's email type is ${emailType}, and a first ${first} record would end that: send "email_type": "${first}", or in a zone file "; domain-service email-type ${first}", if you mean it`,
  )
}

function firstMail({ before, rows }: Rewrite) {
  const type = mailOf(rows)
  return type === mailOf(before.rows) ? undefined : type
}

// A zone never has both: they are conflicting records.
function mailOf(rows: Row[]): 'MX' | 'MXE' | undefined {
  if (rows.some((row) => row.type === 'MX')) return 'MX'
  return rows.some((row) => row.type === 'MXE') ? 'MXE' : undefined
}
