import { parameterInvalid, tooManyRecords } from '../commands/errors.ts'
import type { Params } from '../commands/parameters.ts'
import type { Domain, EmailType, Host } from './domain.ts'
import { emailTypes } from './domain.ts'
import { type Entry, isKnownType, readEntry, readSubmitted, type Submitted } from './record.ts'

/** How many records a zone may have. */
export const maxRecords = 150

type Zone = Pick<Domain, 'emailType' | 'hosts'>

interface Terms {
  /** Gives the id of a row that was not there before. */
  nextId: () => number
  /** Keeps the old preference of an MX that is sent with another one, as some report of the registrar. */
  keepsMxPref: boolean
}

/**
 * Works out the zone that setHosts leaves behind; what is not sent is not in it. Rows sent exactly as they are stored
 * pass unchecked and keep their id. Changes nothing itself, so a refusal leaves the zone as it was.
 */
export function replaceZone(domain: Domain, params: Params, terms: Terms): Zone {
  const emailType = readEmailType(domain, params)
  const submitted = readSubmitted(params)
  if (submitted.length > maxRecords) throw tooManyRecords(maxRecords)
  const stored = new Map(domain.hosts.map((host) => [keyOf(host), host]))
  const taken = new Map<string, Host>()
  for (const one of submitted) {
    const host = settle(one, domain, stored, terms)
    // The first of two equal records wins; records of the wrong mail service vanish without a word.
    if (!taken.has(keyOf(host)) && isCarried(host, emailType)) taken.set(keyOf(host), host)
  }
  return { emailType, hosts: [...taken.values()] }
}

/** The rows in the order getHosts gives them. */
export function sortHosts(hosts: Host[]): Host[] {
  return [...hosts].sort(
    (a, b) => compare(a.type, b.type) || compare(a.name, b.name) || a.hostId - b.hostId,
  )
}

/** Orders texts by code unit, so that no locale has a say. */
export function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function settle(
  submitted: Submitted,
  domain: Domain,
  stored: Map<string, Host>,
  { nextId, keepsMxPref }: Terms,
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
  const titles =
    entry.type === 'MXE'
      ? { associatedAppTitle: 'MXE', friendlyName: 'MXE1' }
      : { associatedAppTitle: '', friendlyName: '' }
  return { hostId, ...entry, ...titles, isActive: true, isDdns: false }
}

function isSame({ type, ttl, mxPref }: Submitted, old: Host): boolean {
  const samePref = type !== 'MX' || (mxPref ?? '10') === String(old.mxPref)
  return samePref && (ttl ?? '1800') === String(old.ttl)
}

// Forwarding outlives a call that does not speak of mail; every other mail service does not.
function readEmailType(domain: Domain, params: Params): EmailType {
  const sent = params.get('EmailType')?.toUpperCase()
  if (sent === undefined) return domain.emailType === 'FWD' ? 'FWD' : 'NONE'
  const known = emailTypes.find((type) => type === sent)
  if (!known) throw parameterInvalid('EmailType', `not one of ${emailTypes.join(', ')}`)
  return known
}

function isCarried({ type }: Host, emailType: EmailType): boolean {
  if (type === 'MXE') return emailType === 'MXE'
  return type !== 'MX' || ['MX', 'OX', 'GMAIL'].includes(emailType)
}

function keyOf({ name, type, address }: Pick<Host, 'name' | 'type' | 'address'>): string {
  return JSON.stringify([name.toLowerCase(), type, address])
}
