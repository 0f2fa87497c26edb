import { ErrorResponse, parameterInvalid } from '../protocol/errors.ts'
import { type Params, readSubmitted, type Submitted } from '../protocol/parameters.ts'
import { compare, titlesOf } from '../protocol/results.ts'
import { type Domain, type EmailType, emailTypes, type Host } from './domain.ts'
import { type Entry, isKnownType, readEntry } from './record.ts'

const maxRecords = 150

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

/** Rows in the order of getHosts. */
export const sortHosts = (hosts: Host[]): Host[] =>
  [...hosts].sort(
    (a, b) => compare(a.type, b.type) || compare(a.name, b.name) || a.hostId - b.hostId,
  )

function toHost(
  submitted: Submitted,
  domain: Domain,
  stored: Map<string, Host>,
  { nextId, keepsMxPref }: Options,
): Host {
  const old = stored.get(keyOf(submitted))
  if (old && isKnownType(submitted.type) && isSame(submitted, old)) return { ...old, isDdns: false }
  const entry = readEntry(submitted, domain.name)
  const twin = stored.get(keyOf(entry))
  if (twin && entry.type === 'MX' && keepsMxPref) entry.mxPref = twin.mxPref
  if (twin && twin.ttl === entry.ttl && twin.mxPref === entry.mxPref) {
    return { ...twin, isDdns: false }
  }
  return makeHost(entry, nextId())
}

function makeHost(entry: Entry, hostId: number): Host {
  return { hostId, ...entry, ...titlesOf(entry.type), isActive: true, isDdns: false }
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
