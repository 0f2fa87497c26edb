import { type Domain, serversOf, usesOurDns } from '../account/domain.ts'
import { domainMissing } from '../protocol/errors.ts'
import { infoResult, unknownInfo, writeDay } from '../protocol/results.ts'
import { type Attributes, type Element, element } from '../protocol/xml.ts'
import type { Commands } from './command.ts'
import { isExpired } from './listing.ts'

const providers = { basic: 'FREE', premium: 'PREMIUM', free: 'FreeDNS', custom: 'CUSTOM' }

export const infoCommands: Commands = {
  'domains.getInfo'(params, { account, now }) {
    const name = params.require('DomainName', domainMissing)
    const domain = account.find(name)
    if (!domain) throw unknownInfo()
    const isForeign = domain.dns === 'free'
    const attributes = {
      ...(isForeign ? {} : { Status: readStatus(domain, now()) }),
      ID: domain.id,
      DomainName: domain.name,
      OwnerName: domain.owner,
      IsOwner: domain.isOwner,
      IsPremium: domain.isPremium,
    }
    return infoResult({
      attributes,
      dates: [
        element('CreatedDate', {}, writeDay(domain.created)),
        ...(isForeign ? [] : [element('ExpiredDate', {}, writeDay(domain.expires))]),
      ],
      privacy: describePrivacy(domain),
      subscription: domain.dns === 'premium' ? subscriptionOf(domain) : undefined,
      dns: describeDns(domain),
      nameservers: serversOf(domain),
      rights: describeRights(domain),
    })
  },
}

const subscriptionOf = ({ id, created, expires }: Domain) => ({
  id: id + 700_000,
  created: `${created}T00:00:00`,
  expires: `${expires}T00:00:00`,
})

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

const describeDns = (domain: Domain): Attributes => ({
  ProviderType: providers[domain.dns],
  IsUsingOurDNS: usesOurDns(domain),
  HostCount: domain.hosts.length,
  // The panel's words, unlike in getHosts.
  EmailType: domain.emailType === 'NONE' ? 'No Email Service' : domain.emailType,
  DynamicDNSStatus: domain.hosts.some(({ isDdns }) => isDdns),
  IsFailover: false,
})

function describeRights({ dns, isOwner, rights }: Domain): Element {
  const isAll = rights === 'all' && isOwner
  const named = rights === 'all' ? [] : rights
  if (dns === 'free') return element('Modificationrights')
  const content = named.map((right) => element('Rights', { Type: right }, 'OK'))
  return element('Modificationrights', { All: isAll }, content)
}
