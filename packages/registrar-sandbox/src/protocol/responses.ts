type Value = string | number | boolean

/** An attribute without a value is left out. */
export type Attributes = Record<string, Value | null | undefined>

/** One XML element: attributes in their order, then text or elements. */
export interface Element {
  name: string
  attributes: Attributes
  content: string | Element[]
}

export function element(name: string, attributes: Attributes = {}, content: string | Element[] = []): Element {
  return { name, attributes, content }
}

/** Elements with a text each, by their names. */
export const leaves = (texts: Record<string, Value>): Element[] =>
  Object.entries(texts).map(([name, text]) => element(name, {}, String(text)))

/**
 * A refusal of the registrar. Clients rely on the number; the words may change. `skeleton`: content of CommandResponse,
 * which some have. `isGlobal`: before the command was read, so it is not echoed, and there is no CommandResponse.
 */
export class ErrorResponse extends Error {
  readonly number: string
  readonly details: { isGlobal?: boolean; skeleton?: Element[] }

  constructor(number: string, message: string, details: ErrorResponse['details'] = {}) {
    super(message)
    this.number = number
    this.details = details
  }
}

/** A refusal of the caller, whatever the command. */
export const accessRefused = (number: string, message: string) => new ErrorResponse(number, message, { isGlobal: true })

export const keyRefused = () => accessRefused('1011102', 'The API key is not valid, or API access is not enabled')
export const commandMissing = () => accessRefused('1010104', 'Parameter Command is missing')

export const domainMissing = (parameter: string) => new ErrorResponse('2010166', `Parameter ${parameter} is missing`)
export const domainNotFound = (skeleton: Element[] = []) =>
  new ErrorResponse('2019166', 'Domain name not found', { skeleton })
export const domainNotEditable = () => new ErrorResponse('2030166', 'Edit permission for this domain is not given')

export const parameterMissing = (parameter: string) => new ErrorResponse('2010288', `Parameter ${parameter} is missing`)
export const parameterInvalid = (parameter: string, reason: string) =>
  new ErrorResponse('2011288', `Parameter ${parameter} is invalid: ${reason}`)

/** The parts of a response around its result. */
export interface Envelope {
  /** As the registrar spells it; undefined if unknown. */
  command: string | undefined
  /** As the caller spelled it. */
  requested: string
  /** Name of the server that answers. */
  server: string
}

export function renderAnswer(envelope: Envelope, answer: Element[] | ErrorResponse): string {
  const refusal = answer instanceof ErrorResponse ? answer : undefined
  const { isGlobal = false, skeleton = [] } = refusal?.details ?? {}
  const command = isGlobal ? undefined : envelope.command
  const requested = isGlobal ? '' : envelope.requested.toLowerCase()
  const result = answer instanceof ErrorResponse ? skeleton : answer
  const parts = [
    element('Errors', {}, refusal && [element('Error', { Number: refusal.number }, refusal.message)]),
    element('Warnings'),
    element('RequestedCommand', {}, requested),
    ...(command ? [element('CommandResponse', { Type: command }, result)] : []),
    element('Server', {}, envelope.server),
    // Not a typo: the registrar writes the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, '0'),
  ]
  const root = element('ApiResponse', { Status: refusal ? 'ERROR' : 'OK', xmlns }, parts)
  // Two spaces, CRLF, none after the last tag.
  return ['<?xml version="1.0" encoding="utf-8"?>', ...render(root, '')].join('\r\n')
}

const xmlns = 'http://api.namecheap.com/xml.response'

function render({ name, attributes, content }: Element, indent: string): string[] {
  const pairs = Object.entries(attributes).map(([key, value]) =>
    value === undefined || value === null ? '' : ` ${key}="${escapeText(value)}"`,
  )
  const start = `${indent}<${name}${pairs.join('')}`
  if (content.length === 0) return [`${start} />`]
  if (typeof content === 'string') return [`${start}>${escapeText(content)}</${name}>`]
  const inner = content.flatMap((child) => render(child, `${indent}  `))
  return [`${start}>`, ...inner, `${indent}</${name}>`]
}

function escapeText(value: Value): string {
  const escaped = String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  // Line ends and tabs, which XML parsers turn into spaces in attributes, and C0 controls: the panel accepts anything.
  return escaped.replace(/["[\p{Cc}--[\x7f-\x9f]]]/gv, (character) =>
    character === '"' ? '&quot;' : `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`,
  )
}

// The results of the commands, as the registrar was recorded to give them. An absent value is an absent attribute.

/** A day, `YYYY-MM-DD`, as the registrar writes it: MM/DD/YYYY. */
export function writeDay(day: string): string {
  const [year, month, date] = day.split('-')
  return `${month}/${date}/${year}`
}

/** The fields by which lists are filtered and sorted: days as `YYYY-MM-DD`, null if unknown. */
export interface Listed {
  name: string
  created_on: string | null
  expires_on: string | null
  is_expired: boolean | null
}

type ListedDomain = Listed &
  Record<'is_locked' | 'auto_renew' | 'is_premium' | 'uses_registrar_dns', boolean | null> & {
    id: number | string
    user: string
    whois_guard: string | null
  }

const describeListed = (domain: ListedDomain) => ({
  ID: domain.id,
  Name: domain.name,
  User: domain.user,
  Created: domain.created_on && writeDay(domain.created_on),
  Expires: domain.expires_on && writeDay(domain.expires_on),
  IsExpired: domain.is_expired,
  IsLocked: domain.is_locked,
  AutoRenew: domain.auto_renew,
  WhoisGuard: domain.whois_guard,
  IsPremium: domain.is_premium,
  IsOurDNS: domain.uses_registrar_dns,
})

/** namecheap.domains.getList: the domains of one page, and how many there are. */
export const listResult = (
  domains: ListedDomain[],
  { total, page, size }: { total: number; page: number; size: number },
): Element[] => [
  element(
    'DomainGetListResult',
    {},
    domains.map((each) => element('Domain', describeListed(each))),
  ),
  element('Paging', {}, leaves({ TotalItems: total, CurrentPage: page, PageSize: size })),
]

// The panel's titles for a row: of the parking page, or made by setHosts.
function titlesOf({ type, address }: HostRow) {
  if (type === 'MXE') return { AssociatedAppTitle: 'MXE', FriendlyName: 'MXE1' }
  if (type === 'URL' && address.endsWith('/?from=@'))
    return { AssociatedAppTitle: 'URL Forwarding', FriendlyName: 'URL Record' }
  const isParking = type === 'CNAME' && address === 'parkingpage.namecheap.com.'
  return { AssociatedAppTitle: '', FriendlyName: isParking ? 'CNAME Record' : '' }
}

interface HostRow {
  hostId: number
  name: string
  type: string
  address: string
  mxPref: number | string
  ttl: number | string
  isDdns: boolean
}

const describeHost = (host: HostRow) => ({
  HostId: host.hostId,
  Name: host.name,
  Type: host.type,
  Address: host.address,
  MXPref: host.mxPref,
  TTL: host.ttl,
  ...titlesOf(host),
  IsActive: true,
  IsDDNSEnabled: host.isDdns,
})

/** Orders texts by code unit, in every locale. */
export const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

export const sortHosts = <Row extends HostRow>(hosts: Row[]): Row[] =>
  hosts.toSorted((a, b) => compare(a.type, b.type) || compare(a.name, b.name) || a.hostId - b.hostId)

/** namecheap.domains.dns.getHosts: Domain, EmailType and IsUsingOurDNS, and the rows. */
export const hostsResult = (zone: Attributes, hosts: HostRow[]): Element[] => [
  element(
    'DomainDNSGetHostsResult',
    zone,
    sortHosts(hosts).map((host) => element('host', describeHost(host))),
  ),
]

export const setHostsResult = (domain: string): Element[] => [
  element('DomainDNSSetHostsResult', { Domain: domain, IsSuccess: true }, [element('Warnings')]),
]

/** namecheap.domains.dns.getList: Domain, IsUsingOurDNS and IsPremiumDNS. */
export const nameserversResult = (attributes: Attributes, nameservers: string[]): Element[] => [
  element('DomainDNSGetListResult', { ...attributes, IsUsingFreeDNS: false }, nameservers.map(nameserver)),
]

/** Refusals of the zone commands for a domain that is not in this account. */
export const unknownZone = {
  getHosts: (Domain: string) => domainNotFound(hostsResult({ Domain, EmailType: '', IsUsingOurDNS: false }, [])),
  setHosts: (Domain: string) =>
    domainNotFound([
      element('DomainDNSSetHostsResult', { Domain, EmailType: '', IsSuccess: false }, [element('Warnings')]),
    ]),
  getList: (Domain: string) => domainNotFound([element('DomainDNSGetListResult', { Domain, IsUsingOurDNS: false })]),
}

/** namecheap.domains.getInfo: the details, then privacy, PremiumDNS, DNS and rights. */
export const infoResult = (attributes: Attributes, details: Record<string, string>, parts: Element[]): Element[] => [
  element('DomainGetInfoResult', attributes, [
    element('DomainDetails', {}, leaves({ ...details, NumYears: 0 })),
    element('LockDetails'),
    ...parts,
  ]),
]

const never = '0001-01-01T00:00:00'
const noSubscription = { SubscriptionId: -1, CreatedDate: never, ExpirationDate: never, IsActive: false }

export const premiumDns = element('PremiumDnsSubscription', {}, leaves({ UseAutoRenew: false, ...noSubscription }))

export const nameserver = (name: string) => element('Nameserver', {}, name)

/** Refusal of getInfo for a domain that is not in this account. */
export const unknownInfo = () =>
  new ErrorResponse('2030166', 'Domain is invalid', {
    skeleton: infoResult({ ID: 0, IsOwner: false, IsPremium: false }, {}, [
      element('Whoisguard', {}, leaves({ ID: 0 })),
      premiumDns,
      element('DnsDetails', { IsUsingOurDNS: false, HostCount: 0, DynamicDNSStatus: false, IsFailover: false }),
      element('Modificationrights'),
    ]),
  })
