import { type Attributes, domainNotFound, type Element, ErrorResponse, element, leaves } from './answer.ts'

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
