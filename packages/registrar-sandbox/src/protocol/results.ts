import {
  type Attributes,
  domainNotFound,
  type Element,
  ErrorResponse,
  element,
  leaves,
} from './answer.ts'

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
  element('Paging', {}, leaves({ TotalItems: total, CurrentPage: page, PageSize: size })),
]

/** The panel's titles for a row: of the parking page, or made by setHosts. */
export function titlesOf({ type, address }: { type: string; address: string }) {
  if (type === 'MXE') return { AssociatedAppTitle: 'MXE', FriendlyName: 'MXE1' }
  if (type === 'URL' && address.endsWith('/?from=@'))
    return { AssociatedAppTitle: 'URL Forwarding', FriendlyName: 'URL Record' }
  const isParking = type === 'CNAME' && address === 'parkingpage.namecheap.com.'
  return { AssociatedAppTitle: '', FriendlyName: isParking ? 'CNAME Record' : '' }
}

interface HostAttributes extends Attributes {
  HostId: number
  Name: string
  Type: string
}

const byTypeAndName = (a: HostAttributes, b: HostAttributes) =>
  compare(a.Type, b.Type) || compare(a.Name, b.Name) || a.HostId - b.HostId

/** Orders texts by code unit, in every locale. */
export const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** namecheap.domains.dns.getHosts: Domain, EmailType and IsUsingOurDNS, and the rows, by type and name. */
export const hostsResult = (zone: Attributes, hosts: HostAttributes[]): Element[] => [
  element(
    'DomainDNSGetHostsResult',
    zone,
    hosts.sort(byTypeAndName).map((host) => element('host', host)),
  ),
]

/** namecheap.domains.dns.setHosts */
export const setHostsResult = (domain: string): Element[] => [
  element('DomainDNSSetHostsResult', { Domain: domain, IsSuccess: true }, [element('Warnings')]),
]

/** namecheap.domains.dns.getList: Domain, IsUsingOurDNS and IsPremiumDNS. */
export const nameserversResult = (attributes: Attributes, nameservers: string[]): Element[] => [
  element(
    'DomainDNSGetListResult',
    { ...attributes, IsUsingFreeDNS: false },
    nameservers.map(nameserver),
  ),
]

/** Refusals of the zone commands for a domain that is not in this account. */
export const unknownZone = {
  getHosts: (Domain: string) =>
    domainNotFound(hostsResult({ Domain, EmailType: '', IsUsingOurDNS: false }, [])),
  setHosts: (Domain: string) =>
    domainNotFound([
      element('DomainDNSSetHostsResult', { Domain, EmailType: '', IsSuccess: false }, [
        element('Warnings'),
      ]),
    ]),
  getList: (Domain: string) =>
    domainNotFound([element('DomainDNSGetListResult', { Domain, IsUsingOurDNS: false })]),
}

/** A domain as getInfo describes it. */
interface InfoResult {
  /** Status, ID, DomainName, OwnerName, IsOwner, IsPremium. */
  attributes: Attributes
  /** CreatedDate and ExpiredDate, as far as they are known. */
  dates?: Record<string, string>
  privacy?: Element
  /** Of PremiumDNS. */
  subscription?: { id: number; created: string; expires: string } | undefined
  dns: Attributes
  nameservers?: string[]
  rights: Element
}

const never = '0001-01-01T00:00:00'
const noSubscription = { id: -1, created: never, expires: never }

/** namecheap.domains.getInfo */
export function infoResult(info: InfoResult): Element[] {
  const { attributes, dates, dns, nameservers = [], rights } = info
  const { id, created, expires } = info.subscription ?? noSubscription
  const subscription = {
    UseAutoRenew: false,
    SubscriptionId: id,
    CreatedDate: created,
    ExpirationDate: expires,
    IsActive: info.subscription !== undefined,
  }
  return [
    element('DomainGetInfoResult', attributes, [
      element('DomainDetails', {}, leaves({ ...dates, NumYears: 0 })),
      element('LockDetails'),
      info.privacy ?? element('Whoisguard', {}, leaves({ ID: 0 })),
      element('PremiumDnsSubscription', {}, leaves(subscription)),
      element('DnsDetails', dns, nameservers.map(nameserver)),
      rights,
    ]),
  ]
}

const nameserver = (name: string) => element('Nameserver', {}, name)

/** Refusal of getInfo for a domain that is not in this account. */
export const unknownInfo = () =>
  new ErrorResponse('2030166', 'Domain is invalid', {
    skeleton: infoResult({
      attributes: { ID: 0, IsOwner: false, IsPremium: false },
      dns: { IsUsingOurDNS: false, HostCount: 0, DynamicDNSStatus: false, IsFailover: false },
      rights: element('Modificationrights'),
    }),
  })
