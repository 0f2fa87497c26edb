import type { Account } from '../account/account.ts'
import { type Domain, serversOf, usesOurDns } from '../account/domain.ts'
import { domainInvalid, domainMissing } from './errors.ts'
import { isExpired, writeDay } from './listing.ts'
import type { Params } from './parameters.ts'
import { type Element, element } from './xml.ts'

const never = '0001-01-01T00:00:00'
const providers = { basic: 'FREE', premium: 'PREMIUM', free: 'FreeDNS', custom: 'CUSTOM' }

/** namecheap.domains.getInfo */
export function getInfo(account: Account, params: Params, now: number): Element[] {
  const name = params.require('DomainName', domainMissing)
  const domain = account.find(name)
  if (!domain) throw domainInvalid(describeNothing())
  const isForeign = domain.dns === 'free'
  const attributes = {
    ...(isForeign ? {} : { Status: readStatus(domain, now) }),
    ID: domain.id,
    DomainName: domain.name,
    OwnerName: domain.owner,
    IsOwner: domain.isOwner,
    IsPremium: domain.isPremium,
  }
  const expiry = isForeign ? [] : [element('ExpiredDate', {}, writeDay(domain.expires))]
  return [
    element('DomainGetInfoResult', attributes, [
      element('DomainDetails', {}, [
        element('CreatedDate', {}, writeDay(domain.created)),
        ...expiry,
        element('NumYears', {}, '0'),
      ]),
      element('LockDetails'),
      describePrivacy(domain),
      describeSubscription(domain),
      describeDns(domain),
      describeRights(domain),
    ]),
  ]
}

function readStatus(domain: Domain, now: number): string {
  if (isExpired(domain, now)) return 'Expired'
  return domain.isLocked ? 'Locked' : 'Ok'
}

function describePrivacy(domain: Domain): Element {
  if (domain.dns === 'free' || domain.whoisGuard === 'NOTPRESENT') {
    return element('Whoisguard', { Enabled: 'NotAlloted' }, [element('ID', {}, '0')])
  }
  return element('Whoisguard', { Enabled: domain.whoisGuard === 'ENABLED' ? 'True' : 'False' }, [
    element('ID', {}, String(domain.id + 500_000)),
    element('ExpiredDate', {}, writeDay(domain.expires)),
    element('EmailDetails', {
      WhoisGuardEmail: `contact-${domain.id}@privacy.example`,
      ForwardedTo: `${domain.owner}@mail.example`,
      LastAutoEmailChangeDate: '',
      AutoEmailChangeFrequencyDays: 0,
    }),
  ])
}

function describeSubscription(domain: Domain | undefined): Element {
  const isPremium = domain?.dns === 'premium'
  return element('PremiumDnsSubscription', {}, [
    element('UseAutoRenew', {}, 'false'),
    element('SubscriptionId', {}, isPremium ? String(domain.id + 700_000) : '-1'),
    element('CreatedDate', {}, isPremium ? `${domain.created}T00:00:00` : never),
    element('ExpirationDate', {}, isPremium ? `${domain.expires}T00:00:00` : never),
    element('IsActive', {}, String(isPremium)),
  ])
}

function describeDns(domain: Domain): Element {
  const attributes = {
    ProviderType: providers[domain.dns],
    IsUsingOurDNS: usesOurDns(domain),
    HostCount: domain.hosts.length,
    // getInfo shows the panel's words for some types, unlike getHosts.
    EmailType: domain.emailType === 'NONE' ? 'No Email Service' : domain.emailType,
    DynamicDNSStatus: domain.hosts.some(({ isDdns }) => isDdns),
    IsFailover: false,
  }
  const servers = serversOf(domain).map((name) => element('Nameserver', {}, name))
  return element('DnsDetails', attributes, servers)
}

function describeRights({ dns, isOwner, rights }: Domain): Element {
  if (dns === 'free') return element('Modificationrights')
  if (rights === 'all') return element('Modificationrights', { All: isOwner })
  const each = rights.map((right) => element('Rights', { Type: right }, 'OK'))
  return element('Modificationrights', { All: false }, each)
}

function describeNothing(): Element[] {
  return [
    element('DomainGetInfoResult', { ID: 0, IsOwner: false, IsPremium: false }, [
      element('DomainDetails', {}, [element('NumYears', {}, '0')]),
      element('LockDetails'),
      element('Whoisguard', {}, [element('ID', {}, '0')]),
      describeSubscription(undefined),
      element('DnsDetails', {
        IsUsingOurDNS: false,
        HostCount: 0,
        DynamicDNSStatus: false,
        IsFailover: false,
      }),
      element('Modificationrights'),
    ]),
  ]
}
