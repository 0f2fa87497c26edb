import type { Account } from '../account/account.ts'
import { type Domain, serversOf, usesOurDns } from '../account/domain.ts'
import { replaceZone } from '../account/zone.ts'
import * as errors from '../protocol/answer.ts'
import { type Element, element } from '../protocol/answer.ts'
import type { Params } from '../protocol/parameters.ts'
import { hostsResult, nameserversResult, setHostsResult, unknownZone } from '../protocol/results.ts'
import { type Commands, findNamed } from './domains.ts'

const maxServers = 12

export const dnsCommands: Commands = {
  'domains.dns.getHosts'(params, { account }) {
    const domain = findZone(account, params, unknownZone.getHosts)
    if (domain.whenElsewhere === 'error') checkManaged(domain)
    const { name: Domain, emailType: EmailType, hosts } = domain
    const attributes = { Domain, EmailType, IsUsingOurDNS: usesOurDns(domain) }
    return hostsResult(attributes, hosts)
  },

  'domains.dns.setHosts'(params, { account, keepsMxPref }) {
    const domain = findZone(account, params, unknownZone.setHosts)
    checkEditable(domain, 'hosts')
    checkManaged(domain)
    Object.assign(domain, replaceZone(domain, params, { nextId: () => account.nextHostId(), keepsMxPref }))
    return setHostsResult(domain.name)
  },

  // The registrar's getList does not find FreeDNS domains.
  'domains.dns.getList'(params, { account }) {
    const domain = findZone(account, params, unknownZone.getList)
    if (domain.dns === 'free') throw unknownZone.getList(domain.name)
    const flags = { IsUsingOurDNS: usesOurDns(domain), IsPremiumDNS: domain.dns === 'premium' }
    return nameserversResult({ Domain: domain.name, ...flags }, serversOf(domain))
  },

  'domains.dns.setDefault': (params, { account }) => setServers(account, params, 'basic'),

  'domains.dns.setCustom': (params, { account }) => setServers(account, params, 'custom'),

  'domains.dns.getEmailForwarding'(params, context) {
    const result = 'DomainEmailForwardingResult'
    const domain = findNamed(context, params, (Domain) => errors.domainNotFound([element(result, { Domain })]))
    const forwards = domain.forwards.map(({ mailbox, to }) => element('Forward', { mailbox, ForwardTo: to }))
    return [element(result, { Domain: domain.name }, forwards)]
  },

  // The rules apply only while the email type is FWD.
  'domains.dns.setEmailForwarding'(params, context) {
    const describe = (Domain: string, IsSuccess: boolean) => [
      element('DomainDNSSetEmailForwardingResult', { Domain, IsSuccess }),
    ]
    const domain = findNamed(context, params, (name) => errors.domainNotFound(describe(name, false)))
    checkEditable(domain, 'hosts')
    checkManaged(domain)
    domain.forwards = params.indexes(['MailBox', 'ForwardTo']).map((number) => ({
      mailbox: params.require(`MailBox${number}`).toLowerCase(),
      to: params.require(`ForwardTo${number}`),
    }))
    return describe(domain.name, true)
  },
}

function setServers(account: Account, params: Params, dns: 'basic' | 'custom'): Element[] {
  const result = dns === 'basic' ? 'DomainDNSSetDefaultResult' : 'DomainDNSSetCustomResult'
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

// A wrong split into SLD and TLD finds nothing; only FreeDNS zones have dots in the SLD.
function findZone(account: Account, params: Params, unknown: (name: string) => Error): Domain {
  const sld = params.require('SLD', errors.domainMissing).toLowerCase()
  const tld = params.require('TLD', errors.domainMissing).toLowerCase()
  const domain = account.find(`${sld}.${tld}`)
  const isSplitRight = domain?.dns === 'free' || !sld.includes('.')
  if (domain && isSplitRight) return domain
  throw unknown(`${sld}.${tld}`)
}

function checkEditable(domain: Domain, right: 'hosts' | 'nameserver'): void {
  const isAllowed = domain.rights === 'all' || domain.rights.includes(right)
  if (domain.isLocked || !isAllowed) throw errors.domainNotEditable()
}

function checkManaged(domain: Domain): void {
  if (usesOurDns(domain)) return
  const words = 'This domain does not use our DNS servers, so the command is not possible'
  throw new errors.ErrorResponse('2030288', words)
}
