import type { Account } from '../account/account.ts'
import { type Domain, dayOf, serversOf, usesOurDns } from '../account/domain.ts'
import { replaceZone } from '../account/zone.ts'
import { isOfType, readListQuery, sortDomains } from '../protocol/list-query.ts'
import type { Params } from '../protocol/parameters.ts'
import * as responses from '../protocol/responses.ts'
import { type Attributes, type Element, element, leaves } from '../protocol/responses.ts'

const yearlyPrice = 12.98
const roles = ['Registrant', 'Tech', 'Admin', 'AuxBilling']
const firstOrder = 600_001
const providers = { basic: 'FREE', premium: 'PREMIUM', free: 'FreeDNS', custom: 'CUSTOM' }

export interface Context {
  account: Account
  now: () => number
  keepsMxPref: boolean
}

/** Commands by their names without `namecheap.`: parameters in, the result out; a refusal is thrown. */
type Commands = Record<string, (params: Params, context: Context) => Element[]>

/** The domain named by DomainName; throws the refusal for a domain that is not in this account. */
function findNamed({ account }: Context, params: Params, unknown: () => Error = responses.domainNotFound): Domain {
  const name = params.require('DomainName', responses.domainMissing)
  const domain = account.find(name)
  if (!domain) throw unknown()
  return domain
}

const { unknownZone } = responses

export const commands: Commands = {
  // Without FreeDNS domains, which are not registered in this account.
  'domains.getList'(params, { account, now }) {
    const { listType, searchTerm = '', sortBy, page, pageSize: size } = readListQuery(params)
    const term = searchTerm.toLowerCase()
    const today = dayOf(now())
    const found = account.domains
      .filter(({ dns, name }) => dns !== 'free' && name.includes(term))
      .map((domain) => describeListed(domain, today))
      .filter((each) => isOfType(each, listType, now()))
    const shown = sortDomains(found, sortBy).slice((page - 1) * size, page * size)
    return responses.listResult(shown, { total: found.length, page, size })
  },

  // A few suffixes.
  'domains.getTldList'() {
    const suffixes = 'com net org io dev shop photography co.uk de it.com'.split(' ')
    const describe = (Name: string) => element('Tld', { Name, ...terms }, `.${Name} domains`)
    return [element('Tlds', {}, suffixes.map(describe))]
  },

  'domains.getInfo'(params, context) {
    const domain = findNamed(context, params, responses.unknownInfo)
    const isForeign = domain.dns === 'free'
    const attributes = {
      Status: isForeign ? undefined : readStatus(domain, context.now()),
      ID: domain.id,
      DomainName: domain.name,
      OwnerName: domain.owner,
      IsOwner: domain.isOwner,
      IsPremium: domain.isPremium,
    }
    const dates = {
      CreatedDate: responses.writeDay(domain.created),
      ...(isForeign ? {} : { ExpiredDate: responses.writeDay(domain.expires) }),
    }
    return responses.infoResult(attributes, dates, [
      describePrivacy(domain),
      responses.premiumDns,
      element('DnsDetails', describeDns(domain), serversOf(domain).map(responses.nameserver)),
      describeRights(domain),
    ])
  },

  // The same invented contact in every role.
  'domains.getContacts'(params, context) {
    const domain = findNamed(context, params)
    const describeContacts = (isReadOnly: boolean) =>
      roles.map((role) => element(role, { ReadOnly: isReadOnly }, leaves(contact)))
    const attributes = { Domain: domain.name, domainnameid: domain.id }
    const nexus = [element('RegistrantNexus'), element('RegistrantNexusCountry')]
    return [
      element('DomainContactsResult', attributes, [
        ...describeContacts(false),
        element('CurrentAttributes', {}, nexus),
        ...(domain.whoisGuard === 'ENABLED' ? [element('WhoisGuardContact', {}, describeContacts(true))] : []),
      ]),
    ]
  },

  'domains.getRegistrarLock'(params, context) {
    const domain = findNamed(context, params)
    const attributes = { Domain: domain.name, RegistrarLockStatus: domain.isLocked }
    return [element('DomainGetRegistrarLockResult', attributes)]
  },

  // Adds years to the expiry and charges nothing.
  'domains.renew'(params, context) {
    const domain = findNamed(context, params)
    const years = Number(params.require('Years', responses.domainMissing))
    if (!Number.isInteger(years) || years < 1 || years > 10)
      throw responses.parameterInvalid('Years', 'not a number from 1 to 10')
    const [year = '', ...rest] = domain.expires.split('-')
    domain.expires = [String(Number(year) + years).padStart(4, '0'), ...rest].join('-')
    const attributes = {
      DomainName: domain.name,
      DomainID: domain.id,
      Renew: true,
      OrderID: firstOrder + domain.id,
      TransactionID: firstOrder + 2 * domain.id,
      ChargedAmount: (years * yearlyPrice).toFixed(4),
    }
    const details = { ExpiredDate: `${responses.writeDay(domain.expires)} 12:00:00 AM`, NumYears: 0 }
    const content = [element('DomainDetails', {}, leaves(details))]
    return [element('DomainRenewResult', attributes, content)]
  },

  'domains.dns.getHosts'(params, { account }) {
    const domain = findZone(account, params, unknownZone.getHosts)
    if (domain.whenElsewhere === 'error') checkManaged(domain)
    const { name: Domain, emailType: EmailType, hosts } = domain
    const attributes = { Domain, EmailType, IsUsingOurDNS: usesOurDns(domain) }
    return responses.hostsResult(attributes, hosts)
  },

  'domains.dns.setHosts'(params, { account, keepsMxPref }) {
    const domain = findZone(account, params, unknownZone.setHosts)
    if (domain.isLocked || !(domain.rights === 'all' || domain.rights.includes('hosts')))
      throw responses.domainNotEditable()
    checkManaged(domain)
    Object.assign(domain, replaceZone(domain, params, { nextId: () => account.nextHostId(), keepsMxPref }))
    return responses.setHostsResult(domain.name)
  },

  // The registrar's getList does not find FreeDNS domains.
  'domains.dns.getList'(params, { account }) {
    const domain = findZone(account, params, unknownZone.getList)
    if (domain.dns === 'free') throw unknownZone.getList(domain.name)
    const flags = { IsUsingOurDNS: usesOurDns(domain), IsPremiumDNS: domain.dns === 'premium' }
    return responses.nameserversResult({ Domain: domain.name, ...flags }, serversOf(domain))
  },
}

// A wrong split into SLD and TLD finds nothing; only FreeDNS zones have dots in the SLD.
function findZone(account: Account, params: Params, unknown: (name: string) => Error): Domain {
  const sld = params.require('SLD', responses.domainMissing).toLowerCase()
  const tld = params.require('TLD', responses.domainMissing).toLowerCase()
  const domain = account.find(`${sld}.${tld}`)
  const isSplitRight = domain?.dns === 'free' || !sld.includes('.')
  if (domain && isSplitRight) return domain
  throw unknown(`${sld}.${tld}`)
}

function checkManaged(domain: Domain): void {
  if (usesOurDns(domain)) return
  const words = 'This domain does not use our DNS servers, so the command is not possible'
  throw new responses.ErrorResponse('2030288', words)
}

function readStatus(domain: Domain, now: number): string {
  if (domain.expires < dayOf(now)) return 'Expired'
  return domain.isLocked ? 'Locked' : 'Ok'
}

function describePrivacy(domain: Domain): Element {
  if (domain.dns === 'free' || domain.whoisGuard === 'NOTPRESENT') {
    return element('Whoisguard', { Enabled: 'NotAlloted' }, leaves({ ID: 0 }))
  }
  return element('Whoisguard', { Enabled: domain.whoisGuard === 'ENABLED' ? 'True' : 'False' }, [
    ...leaves({ ID: domain.id + 500_000, ExpiredDate: responses.writeDay(domain.expires) }),
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

const describeListed = (domain: Domain, today: string) => ({
  id: domain.id,
  name: domain.name,
  user: domain.owner,
  is_locked: domain.isLocked,
  created_on: domain.created,
  expires_on: domain.expires,
  is_expired: domain.expires < today,
  auto_renew: domain.autoRenew,
  whois_guard: domain.whoisGuard,
  is_premium: domain.isPremium,
  uses_registrar_dns: usesOurDns(domain),
})

const years = ['Register', 'Renew', 'Transfer'].flatMap((each) => [
  [`Min${each}Years`, 1],
  [`Max${each}Years`, each === 'Transfer' ? 1 : 10],
])
const terms: Attributes = {
  NonRealTime: false,
  ...Object.fromEntries(years),
  IsApiRegisterable: true,
  IsApiRenewable: true,
  IsApiTransferable: true,
  IsEppRequired: true,
  IsDisableModContact: false,
  IsDisableWGAllot: false,
  IsIncludeInExtendedSearchOnly: false,
  SequenceNumber: 5,
  Type: 'GTLD',
  IsSupportsIDN: true,
  Category: 'P',
}

const contact = {
  OrganizationName: 'Sandbox Ltd',
  JobTitle: '',
  FirstName: 'Robin',
  LastName: 'Sample',
  Address1: '1 Example Street',
  Address2: '',
  City: 'Exampleton',
  StateProvince: 'EX',
  StateProvinceChoice: 'P',
  PostalCode: '00001',
  Country: 'US',
  Phone: '+1.5555550100',
  Fax: '',
  EmailAddress: 'robin@mail.example',
  PhoneExt: '',
}
