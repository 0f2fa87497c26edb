import type { Account } from '../account/account.ts'
import { type Domain, type Host, serversOf, usesOurDns } from '../account/domain.ts'
import { replaceZone } from '../account/zone.ts'
import * as errors from '../protocol/errors.ts'
import type { Params } from '../protocol/parameters.ts'
import { hostsResult, nameserversResult, setHostsResult, unknownZone } from '../protocol/results.ts'
import { type Element, element } from '../protocol/xml.ts'

const maxServers = 12

/** namecheap.domains.dns.getHosts */
export function getHosts(account: Account, params: Params): Element[] {
  const domain = findZone(account, params, unknownZone.getHosts)
  if (!usesOurDns(domain) && domain.whenElsewhere === 'error') throw errors.dnsElsewhere()
  const { name: Domain, emailType: EmailType, hosts } = domain
  const attributes = { Domain, EmailType, IsUsingOurDNS: usesOurDns(domain) }
  return hostsResult(attributes, hosts.map(describeHost))
}

/** namecheap.domains.dns.setHosts */
export function setHosts(account: Account, params: Params, keepsMxPref: boolean): Element[] {
  const domain = findZone(account, params, unknownZone.setHosts)
  checkEditable(domain, 'hosts')
  if (!usesOurDns(domain)) throw errors.dnsElsewhere()
  const terms = { nextId: () => account.nextHostId(), keepsMxPref }
  Object.assign(domain, replaceZone(domain, params, terms))
  return setHostsResult(domain.name)
}

/** namecheap.domains.dns.getList; it does not know FreeDNS domains. */
export function getServers(account: Account, params: Params): Element[] {
  const domain = findZone(account, params, unknownZone.getList)
  if (domain.dns === 'free') throw unknownZone.getList(domain.name)
  const flags = { IsUsingOurDNS: usesOurDns(domain), IsPremiumDNS: domain.dns === 'premium' }
  return nameserversResult({ Domain: domain.name, ...flags }, serversOf(domain))
}

/** namecheap.domains.dns.setDefault */
export const setDefault = (account: Account, params: Params): Element[] =>
  setServers(account, params, { result: 'DomainDNSSetDefaultResult', dns: 'basic' })

/** namecheap.domains.dns.setCustom */
export const setCustom = (account: Account, params: Params): Element[] =>
  setServers(account, params, { result: 'DomainDNSSetCustomResult', dns: 'custom' })

function setServers(
  account: Account,
  params: Params,
  { result, dns }: { result: string; dns: 'basic' | 'custom' },
): Element[] {
  const describe = (Domain: string, Updated: boolean) => [element(result, { Domain, Updated })]
  const domain = findZone(account, params, (name) => errors.domainNotFound(describe(name, false)))
  checkEditable(domain, 'nameserver')
  const nameservers = dns === 'basic' ? [] : readServers(params)
  Object.assign(domain, { dns, nameservers })
  return describe(domain.name, true)
}

function readServers(params: Params): string[] {
  const names = params.require('Nameservers').toLowerCase().split(',')
  const nameservers = [...new Set(names.map((name) => name.trim().replace(/\.$/, '')))]
  const areNames = nameservers.every((name) => /^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(name))
  if (!areNames || nameservers.length < 2 || nameservers.length > maxServers)
    throw errors.parameterInvalid('Nameservers', `not 2 to ${maxServers} host names`)
  return nameservers
}

/** namecheap.domains.dns.getEmailForwarding */
export function getForwards(account: Account, params: Params): Element[] {
  const result = 'DomainEmailForwardingResult'
  const domain = findNamed(account, params, (Domain) => [element(result, { Domain })])
  const forwards = domain.forwards.map(({ mailbox, to }) =>
    element('Forward', { mailbox, ForwardTo: to }),
  )
  return [element(result, { Domain: domain.name }, forwards)]
}

/** namecheap.domains.dns.setEmailForwarding; the rules apply only while the email type is FWD. */
export function setForwards(account: Account, params: Params): Element[] {
  const describe = (Domain: string, IsSuccess: boolean) => [
    element('DomainDNSSetEmailForwardingResult', { Domain, IsSuccess }),
  ]
  const domain = findNamed(account, params, (name) => describe(name, false))
  checkEditable(domain, 'hosts')
  if (!usesOurDns(domain)) throw errors.dnsElsewhere()
  domain.forwards = params.indexes(['MailBox', 'ForwardTo']).map((number) => ({
    mailbox: params.require(`MailBox${number}`).toLowerCase(),
    to: params.require(`ForwardTo${number}`),
  }))
  return describe(domain.name, true)
}

// A wrong split into SLD and TLD finds nothing; only FreeDNS zones have dots in the SLD.
function findZone(account: Account, params: Params, unknown: (name: string) => Error): Domain {
  const sld = params.require('SLD', errors.domainMissing).toLowerCase()
  const tld = params.require('TLD', errors.domainMissing).toLowerCase()
  const domain = account.find(`${sld}.${tld}`)
  const isSplitRight = domain?.dns === 'free' || !sld.includes('.')
  if (domain && isSplitRight) return domain
  throw unknown(`${sld}.${tld}`)
}

/** The domain of DomainName. `skeleton`: what an answer has that does not know it. */
export function findNamed(
  account: Account,
  params: Params,
  skeleton: (name: string) => Element[] = () => [],
): Domain {
  const name = params.require('DomainName', errors.domainMissing)
  const domain = account.find(name)
  if (!domain) throw errors.domainNotFound(skeleton(name))
  return domain
}

function checkEditable(domain: Domain, right: 'hosts' | 'nameserver'): void {
  const isAllowed = domain.rights === 'all' || domain.rights.includes(right)
  if (domain.isLocked || !isAllowed) throw errors.domainNotEditable()
}

const describeHost = (host: Host) => ({
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
