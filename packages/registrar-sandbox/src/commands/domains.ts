import type { Account } from '../account/account.ts'
import { type Domain, serversOf, usesOurDns } from '../account/domain.ts'
import * as errors from '../protocol/answer.ts'
import { type Attributes, type Element, element, leaves } from '../protocol/answer.ts'
import { isOfType, readListQuery, sortDomains } from '../protocol/list-query.ts'
import type { Params } from '../protocol/parameters.ts'
import { infoResult, listResult, nameserver, premiumDns, unknownInfo, writeDay } from '../protocol/results.ts'

const maxChecked = 50
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
export type Commands = Record<string, (params: Params, context: Context) => Element[]>

/** The domain named by DomainName; throws the refusal for a domain that is not in this account. */
export function findNamed(
  { account }: Context,
  params: Params,
  unknown: (name: string) => Error = () => errors.domainNotFound(),
): Domain {
  const name = params.require('DomainName', errors.domainMissing)
  const domain = account.find(name)
  if (!domain) throw unknown(name)
  return domain
}

export const domainCommands: Commands = {
  // Without FreeDNS domains, which are not registered in this account.
  'domains.getList'(params, { account, now }) {
    const { listType, searchTerm = '', sortBy, page, pageSize: size } = readListQuery(params)
    const term = searchTerm.toLowerCase()
    const found = account.domains
      .filter(({ dns, name }) => dns !== 'free' && name.includes(term))
      .map((domain) => describeListed(domain, now()))
      .filter((each) => isOfType(each, listType, now()))
    const shown = sortDomains(found, sortBy).slice((page - 1) * size, page * size)
    return listResult(shown, { total: found.length, page, size })
  },

  // A name is available unless it is in this account or `example.…`.
  'domains.check'(params, { account }) {
    const names = params.require('DomainList').toLowerCase().split(',')
    if (names.length > maxChecked) throw errors.parameterInvalid('DomainList', 'more than 50 names')
    return names.map((name) => {
      const domain = name.trim()
      const isTaken = account.find(domain) !== undefined || domain.startsWith('example.')
      const attributes = { Domain: domain, Available: !isTaken, ErrorNo: 0, Description: '' }
      return element('DomainCheckResult', { ...attributes, IsPremiumName: false, ...noPrices })
    })
  },

  // A few suffixes.
  'domains.getTldList'() {
    const suffixes = 'com net org io dev shop photography co.uk de it.com'.split(' ')
    const describe = (Name: string) => element('Tld', { Name, ...terms }, `.${Name} domains`)
    return [element('Tlds', {}, suffixes.map(describe))]
  },

  'users.getBalances': () => [
    element('UserGetBalancesResult', {
      Currency: 'USD',
      AvailableBalance: '84.20',
      AccountBalance: '84.20',
      EarnedAmount: '0.00',
      WithdrawableAmount: '0.00',
      FundsRequiredForAutoRenew: '12.98',
    }),
  ],

  'domains.getInfo'(params, context) {
    const domain = findNamed(context, params, unknownInfo)
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
      CreatedDate: writeDay(domain.created),
      ...(isForeign ? {} : { ExpiredDate: writeDay(domain.expires) }),
    }
    return infoResult(attributes, dates, [
      describePrivacy(domain),
      domain.dns === 'premium' ? subscriptionOf(domain) : premiumDns(),
      element('DnsDetails', describeDns(domain), serversOf(domain).map(nameserver)),
      describeRights(domain),
    ])
  },

  // The same invented contact in every role.
  'domains.getContacts'(params, context) {
    const domain = findNamed(context, params)
    const contacts = roles.map((role) => describeContact(role, domain.owner, false))
    const privacy = roles.map((role) => describeContact(role, 'privacy', true))
    const attributes = { Domain: domain.name, domainnameid: domain.id }
    const nexus = [element('RegistrantNexus'), element('RegistrantNexusCountry')]
    return [
      element('DomainContactsResult', attributes, [
        ...contacts,
        element('CurrentAttributes', {}, nexus),
        ...(domain.whoisGuard === 'ENABLED' ? [element('WhoisGuardContact', {}, privacy)] : []),
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
    const years = Number(params.require('Years', errors.domainMissing))
    if (!Number.isInteger(years) || years < 1 || years > 10)
      throw errors.parameterInvalid('Years', 'not a number from 1 to 10')
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
    const details = { ExpiredDate: `${writeDay(domain.expires)} 12:00:00 AM`, NumYears: 0 }
    const content = [element('DomainDetails', {}, leaves(details))]
    return [element('DomainRenewResult', attributes, content)]
  },
}

const subscriptionOf = ({ id, created, expires }: Domain) =>
  premiumDns(id + 700_000, `${created}T00:00:00`, `${expires}T00:00:00`)

function readStatus(domain: Domain, now: number): string {
  if (isExpired(domain, now)) return 'Expired'
  return domain.isLocked ? 'Locked' : 'Ok'
}

function describePrivacy(domain: Domain): Element {
  if (domain.dns === 'free' || domain.whoisGuard === 'NOTPRESENT') {
    return element('Whoisguard', { Enabled: 'NotAlloted' }, leaves({ ID: 0 }))
  }
  return element('Whoisguard', { Enabled: domain.whoisGuard === 'ENABLED' ? 'True' : 'False' }, [
    ...leaves({ ID: domain.id + 500_000, ExpiredDate: writeDay(domain.expires) }),
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

const prices = ['Registration', 'Renewal', 'Restore', 'Transfer'].map((each) => `Premium${each}Price`)
const noPrices = Object.fromEntries([...prices, 'IcannFee', 'EapFee'].map((name) => [name, 0]))

const isExpired = ({ expires }: Domain, now: number) => expires < new Date(now).toISOString().slice(0, 10)

const describeListed = (domain: Domain, now: number) => ({
  id: domain.id,
  name: domain.name,
  user: domain.owner,
  is_locked: domain.isLocked,
  created_on: domain.created,
  expires_on: domain.expires,
  is_expired: isExpired(domain, now),
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

function describeContact(role: string, owner: string, isReadOnly: boolean): Element {
  const fields = {
    OrganizationName: isReadOnly ? 'Privacy service of the sandbox' : 'Sandbox Ltd',
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
    EmailAddress: `${owner}@mail.example`,
    PhoneExt: '',
  }
  return element(role, { ReadOnly: isReadOnly }, leaves(fields))
}
