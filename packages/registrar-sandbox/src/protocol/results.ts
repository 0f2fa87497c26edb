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

/** What the panel shows beside a row of this type that setHosts made. */
export const titlesOf = (type: string) =>
  type === 'MXE'
    ? { associatedAppTitle: 'MXE', friendlyName: 'MXE1' }
    : { associatedAppTitle: '', friendlyName: '' }

/** namecheap.domains.dns.getHosts: Domain, EmailType and IsUsingOurDNS, and the attributes of each row. */
export const hostsResult = (zone: Attributes, hosts: Attributes[]): Element[] => [
  element(
    'DomainDNSGetHostsResult',
    zone,
    hosts.map((host) => element('host', host)),
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
    nameservers.map((name) => element('Nameserver', {}, name)),
  ),
]

/** A domain that this account does not have, as the commands of zones refuse it. */
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
