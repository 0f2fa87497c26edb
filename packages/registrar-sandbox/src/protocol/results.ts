import { domainInvalid, domainNotFound, type ErrorResponse } from './errors.ts'
import { type Attributes, type Element, element } from './xml.ts'

// The results of the commands, as the registrar was recorded to give them. An absent value is an absent attribute.

/** A day, `YYYY-MM-DD`, as the registrar writes it: MM/DD/YYYY. */
export function writeDay(day: string): string {
  const [year, month, date] = day.split('-')
  return `${month}/${date}/${year}`
}

/** namecheap.domains.getList: the domains of one page, and how many there are. */
export const listResult = (
  domains: Attributes[],
  { total, page, size }: { total: number; page: number; size: number },
): Element[] => [
  element(
    'DomainGetListResult',
    {},
    domains.map((each) => element('Domain', each)),
  ),
  element('Paging', {}, [
    element('TotalItems', {}, String(total)),
    element('CurrentPage', {}, String(page)),
    element('PageSize', {}, String(size)),
  ]),
]

/** One row of a zone. */
interface HostAttributes {
  hostId: number
  name: string
  type: string
  address: string
  mxPref: number | string
  ttl: number | string
  associatedAppTitle: string
  friendlyName: string
  isActive: boolean
  isDdns: boolean
  /** Attributes that are to be otherwise. */
  raw?: Record<string, string> | undefined
}

/** What the panel shows beside a row of this type that setHosts made. */
export const titlesOf = (type: string) =>
  type === 'MXE'
    ? { associatedAppTitle: 'MXE', friendlyName: 'MXE1' }
    : { associatedAppTitle: '', friendlyName: '' }

interface ZoneAttributes {
  domain: string
  emailType: string | undefined
  isUsingOurDns: boolean
}

/** namecheap.domains.dns.getHosts */
export function hostsResult(
  { domain, emailType, isUsingOurDns }: ZoneAttributes,
  hosts: HostAttributes[],
): Element[] {
  const attributes = { Domain: domain, EmailType: emailType, IsUsingOurDNS: isUsingOurDns }
  return [element('DomainDNSGetHostsResult', attributes, hosts.map(describeHost))]
}

const describeHost = (host: HostAttributes): Element =>
  element('host', {
    HostId: host.hostId,
    Name: host.name,
    Type: host.type,
    Address: host.address,
    MXPref: host.mxPref,
    TTL: host.ttl,
    AssociatedAppTitle: host.associatedAppTitle,
    FriendlyName: host.friendlyName,
    IsActive: host.isActive,
    IsDDNSEnabled: host.isDdns,
    ...host.raw,
  })

/** namecheap.domains.dns.setHosts */
export const setHostsResult = (domain: string): Element[] => [
  element('DomainDNSSetHostsResult', { Domain: domain, IsSuccess: true }, [element('Warnings')]),
]

interface NameserverAttributes {
  isUsingOurDns: boolean | undefined
  isPremium: boolean
}

/** namecheap.domains.dns.getList */
export const nameserversResult = (
  domain: string,
  { isUsingOurDns, isPremium }: NameserverAttributes,
  nameservers: string[],
): Element[] => [
  element(
    'DomainDNSGetListResult',
    {
      Domain: domain,
      IsUsingOurDNS: isUsingOurDns,
      IsPremiumDNS: isPremium,
      IsUsingFreeDNS: false,
    },
    nameservers.map((name) => element('Nameserver', {}, name)),
  ),
]

/** A domain that this account does not have, as the commands of zones refuse it. */
export const unknownZone: Record<
  'getHosts' | 'setHosts' | 'getList',
  (name: string) => ErrorResponse
> = {
  getHosts: (name) =>
    domainNotFound(hostsResult({ domain: name, emailType: '', isUsingOurDns: false }, [])),
  setHosts: (Domain) =>
    domainNotFound([
      element('DomainDNSSetHostsResult', { Domain, EmailType: '', IsSuccess: false }, [
        element('Warnings'),
      ]),
    ]),
  getList: (Domain) =>
    domainNotFound([element('DomainDNSGetListResult', { Domain, IsUsingOurDNS: false })]),
}

/** A domain as getInfo describes it; instants as the registrar writes them. */
export interface InfoResult {
  /** Status, ID, DomainName, OwnerName, IsOwner, IsPremium. */
  attributes: Attributes
  created?: string | undefined
  expires?: string | undefined
  years?: number | undefined
  privacy?: Element
  /** Of PremiumDNS. */
  subscription?: { id: number; created: string; expires: string } | undefined
  dns: Attributes
  nameservers: string[]
  rights: Element
}

const never = '0001-01-01T00:00:00'

/** namecheap.domains.getInfo */
export function infoResult(info: InfoResult): Element[] {
  const { attributes, created, expires, years = 0, subscription, dns, nameservers, rights } = info
  const privacy = info.privacy ?? element('Whoisguard', {}, [element('ID', {}, '0')])
  const dates = [
    ...(created === undefined ? [] : [element('CreatedDate', {}, created)]),
    ...(expires === undefined ? [] : [element('ExpiredDate', {}, expires)]),
  ]
  return [
    element('DomainGetInfoResult', attributes, [
      element('DomainDetails', {}, [...dates, element('NumYears', {}, String(years))]),
      element('LockDetails'),
      privacy,
      element('PremiumDnsSubscription', {}, [
        element('UseAutoRenew', {}, 'false'),
        element('SubscriptionId', {}, String(subscription?.id ?? -1)),
        element('CreatedDate', {}, subscription?.created ?? never),
        element('ExpirationDate', {}, subscription?.expires ?? never),
        element('IsActive', {}, String(subscription !== undefined)),
      ]),
      element(
        'DnsDetails',
        dns,
        nameservers.map((name) => element('Nameserver', {}, name)),
      ),
      rights,
    ]),
  ]
}

/** getInfo shows the panel's words for no e-mail, unlike getHosts. */
export const shownEmailType = (emailType: string) =>
  emailType === 'NONE' ? 'No Email Service' : emailType

/** A domain that this account does not have, as getInfo refuses it. */
export const unknownInfo = (): ErrorResponse =>
  domainInvalid(
    infoResult({
      attributes: { ID: 0, IsOwner: false, IsPremium: false },
      dns: { IsUsingOurDNS: false, HostCount: 0, DynamicDNSStatus: false, IsFailover: false },
      nameservers: [],
      rights: element('Modificationrights'),
    }),
  )

/** The rights of an account on a domain: all, or those named. */
export const rightsElement = (isAll: boolean | undefined, rights: string[] = []): Element =>
  element(
    'Modificationrights',
    { All: isAll },
    rights.map((right) => element('Rights', { Type: right }, 'OK')),
  )
