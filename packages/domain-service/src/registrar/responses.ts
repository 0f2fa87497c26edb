import { z } from 'zod'
import { ownerOf, type Row } from '../dns/record.ts'
import { emailTypes, type Zone } from '../dns/zone.ts'
import { emailTypeUnknown } from '../errors.ts'
import { badAnswer, badResult } from './call-failed.ts'

/** An XML element. Every value stays text: a TXT record `1e3` is no number. */
export interface Element {
  name: string
  attributes: Record<string, string>
  children: Element[]
  text: string
}

/** Children by name, case-insensitive: the registrar sends `host` and documents `Host`. */
export const childrenOf = (element: Element | undefined, name: string): Element[] =>
  element?.children.filter((child) => child.name.toLowerCase() === name.toLowerCase()) ?? []

export const childOf = (element: Element | undefined, name: string): Element | undefined => childrenOf(element, name)[0]

// Results of the registrar as our own types. Nearly every attribute has been seen missing: null, never a guess.

export type DomainEntry = ReturnType<typeof readDomainEntry>
export type DomainInfo = ReturnType<typeof readDomainInfo>
export type Nameservers = ReturnType<typeof readNameserverList>

export function readDomainList(result: Element, _domain: string, response: Element) {
  const total = toCount(childOf(childOf(response, 'Paging'), 'TotalItems')?.text)
  if (total === null) throw badResult('lacks the total number of domains')
  return { domains: childrenOf(result, 'Domain').map(readDomainEntry), total }
}

function readDomainEntry({ attributes: a }: Element) {
  if (!a.Name) throw badResult('has a domain without a name')
  return {
    name: ownerOf(a.Name),
    id: a.ID ?? '',
    created_on: toDate(a.Created),
    expires_on: toDate(a.Expires),
    is_expired: toBoolean(a.IsExpired),
    is_locked: toBoolean(a.IsLocked),
    auto_renew: toBoolean(a.AutoRenew),
    whois_guard: a.WhoisGuard || null,
    is_premium: toBoolean(a.IsPremium),
    uses_registrar_dns: toBoolean(a.IsOurDNS),
  }
}

export function readDomainInfo(result: Element, domain: string) {
  const a = result.attributes
  requireDomain(a.DomainName, domain)
  const details = childOf(result, 'DomainDetails')
  const guard = childOf(result, 'Whoisguard')
  const dns = childOf(result, 'DnsDetails')
  return {
    /** For clients of the registrar's own protocol. */
    element: result,
    name: domain,
    id: a.ID ?? '',
    status: a.Status || null,
    owner: a.OwnerName || null,
    is_owner: toBoolean(a.IsOwner),
    is_premium: toBoolean(a.IsPremium),
    created_on: toDate(childOf(details, 'CreatedDate')?.text),
    expires_on: toDate(childOf(details, 'ExpiredDate')?.text),
    years: toCount(childOf(details, 'NumYears')?.text),
    whois_guard: {
      status: guardStates[guard?.attributes.Enabled?.toLowerCase() ?? ''] ?? null,
      expires_on: toDate(childOf(guard, 'ExpiredDate')?.text),
    },
    dns: {
      provider: dns?.attributes.ProviderType || null,
      uses_registrar_dns: toBoolean(dns?.attributes.IsUsingOurDNS),
      host_count: toCount(dns?.attributes.HostCount),
      email_type: toEmailType(dns?.attributes.EmailType),
      nameservers: readNameservers(dns),
    },
    rights: readRights(childOf(result, 'Modificationrights')),
  }
}

export function readNameserverList(result: Element, domain: string) {
  requireDomain(result.attributes.Domain, domain)
  return {
    uses_registrar_dns: toBoolean(result.attributes.IsUsingOurDNS),
    nameservers: readNameservers(result).map((name) => ({ name })),
  }
}

/**
 * The rows exactly as written. Fails on an incomplete row: a shorter zone would delete rows with the next write.
 * `emailType` is undefined where the registrar does not say it.
 */
export function readZone(result: Element, domain: string): Zone {
  const a = result.attributes
  requireDomain(a.Domain, domain)
  if (toBoolean(a.IsSuccess) === false) throw badResult('says itself that the zone was not read')
  if (result.text.trim() !== '' || result.children.some((child) => child.name.toLowerCase() !== 'host'))
    throw badResult('has other elements than hosts in a zone')
  return {
    domain,
    usesRegistrarDns: toBoolean(a.IsUsingOurDNS) ?? true,
    emailType: a.EmailType || undefined,
    rows: childrenOf(result, 'host').map(readRow),
  }
}

/** The parameters of a zone. All rows, and always the email type: the registrar deletes what a write does not name. */
export function hostParams({ emailType, rows }: Zone): Record<string, string> {
  if (emailType === undefined) throw emailTypeUnknown()
  const params: Record<string, string> = { EmailType: emailType }
  for (const [index, row] of rows.entries()) {
    const number = index + 1
    params[`HostName${number}`] = row.name
    params[`RecordType${number}`] = row.type
    params[`Address${number}`] = row.address
    if (row.mxPref !== '') params[`MXPref${number}`] = row.mxPref
    if (row.ttl !== '') params[`TTL${number}`] = row.ttl
  }
  return params
}

/** @throws {CallFailed} of unknown outcome where an answer of status OK does not confirm the command. */
export function requireSuccess(result: Element, domain: string) {
  requireDomain(result.attributes.Domain, domain)
  if (toBoolean(result.attributes.IsSuccess) !== true) throw badResult('neither confirms nor refuses the command')
}

function readRow({ attributes: a }: Element): Row {
  const { Name: name, Type: type, Address: address } = a
  if (name === undefined || !type || address === undefined) throw badResult('has a host without name, type or address')
  return {
    name,
    type,
    address,
    mxPref: a.MXPref ?? '',
    ttl: a.TTL ?? '',
    dynamic: toBoolean(a.IsDDNSEnabled) ?? false,
  }
}

const readNameservers = (element: Element | undefined) =>
  childrenOf(element, 'Nameserver').flatMap((each) => each.text.trim().toLowerCase().replace(/\.$/, '') || [])

function readRights(rights: Element | undefined): string[] {
  if (toBoolean(rights?.attributes.All)) return ['all']
  return childrenOf(rights, 'Rights').flatMap((each) =>
    each.attributes.Type && each.text.trim().toUpperCase() === 'OK' ? each.attributes.Type : [],
  )
}

// getInfo has the panel's words: for no e-mail they differ from the code of getHosts.
function toEmailType(shown: string | undefined): string | null {
  const text = shown?.trim() ?? ''
  if (text.toUpperCase() === 'NO EMAIL SERVICE') return 'NONE'
  return emailTypes.find((type) => type === text.toUpperCase()) ?? (text || null)
}

const guardStates: Record<string, string> = {
  true: 'ENABLED',
  false: 'DISABLED',
  notalloted: 'NOTPRESENT',
}

// The answer to another request: the connection or the registrar mixes answers up.
function requireDomain(named: string | undefined, domain: string) {
  if (named === undefined || ownerOf(named.replace(/\.$/, '')) !== domain) throw badAnswer('is about another domain')
}

const toBoolean = (text: string | undefined) =>
  text?.toLowerCase() === 'true' ? true : text?.toLowerCase() === 'false' ? false : null

const toCount = (text: string | undefined) => (/^[0-9]{1,9}$/.test(text?.trim() ?? '') ? Number(text) : null)

// MM/DD/YYYY without a time zone, so it stays a calendar date; the year 1 means never.
function toDate(text: string | undefined): string | null {
  const [, month, day, year] = /^([0-9]{2})\/([0-9]{2})\/((?!0001)[0-9]{4})$/.exec(text?.trim() ?? '') ?? []
  return z.iso.date().safeParse(`${year}-${month}-${day}`).data ?? null
}
