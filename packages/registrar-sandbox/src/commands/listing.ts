import type { Domain } from '../account/domain.ts'
import * as errors from '../protocol/errors.ts'
import { isOfType, readListQuery, sortDomains } from '../protocol/list-query.ts'
import { listResult, writeDay } from '../protocol/results.ts'
import { type Attributes, element } from '../protocol/xml.ts'
import type { Commands } from './command.ts'

const maxChecked = 50

export const listingCommands: Commands = {
  // Without FreeDNS domains, which are not registered in this account.
  'domains.getList'(params, { account, now }) {
    const { listType, searchTerm = '', sortBy, page, pageSize: size } = readListQuery(params)
    const term = searchTerm.toLowerCase()
    const found = account.domains
      .filter(({ dns, name }) => dns !== 'free' && name.includes(term))
      .map(describeListed)
      .filter((each) => isOfType(each, listType, now()))
    const shown = sortDomains(found, sortBy).slice((page - 1) * size, page * size)
    const domains = shown.map(({ domain }) => describeDomain(domain, now()))
    return listResult(domains, { total: found.length, page, size })
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
    const tlds = suffixes.map((name) =>
      element('Tld', { Name: name, ...terms }, `.${name} domains`),
    )
    return [element('Tlds', {}, tlds)]
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
}

const describeListed = (domain: Domain) => {
  const { name, created: created_on, expires: expires_on } = domain
  return { domain, name, created_on, expires_on, is_expired: null }
}

const prices = ['Registration', 'Renewal', 'Restore', 'Transfer'].map(
  (each) => `Premium${each}Price`,
)
const noPrices = Object.fromEntries([...prices, 'IcannFee', 'EapFee'].map((name) => [name, 0]))

/** Whether the last day of the domain has passed. */
export const isExpired = (domain: Domain, now: number) =>
  isOfType(describeListed(domain), 'EXPIRED', now)

const years = ['Register', 'Renew', 'Transfer'].flatMap((each) => [
  [`Min${each}Years`, 1],
  [`Max${each}Years`, each === 'Transfer' ? 1 : 10],
])
const terms: Attributes = {
  ...{ NonRealTime: false, ...Object.fromEntries(years) },
  ...{ IsApiRegisterable: true, IsApiRenewable: true, IsApiTransferable: true },
  ...{ IsEppRequired: true, IsDisableModContact: false, IsDisableWGAllot: false },
  ...{ IsIncludeInExtendedSearchOnly: false, SequenceNumber: 5, Type: 'GTLD' },
  ...{ IsSupportsIDN: true, Category: 'P' },
}

const describeDomain = (domain: Domain, now: number): Attributes => ({
  ID: domain.id,
  Name: domain.name,
  User: domain.owner,
  Created: writeDay(domain.created),
  Expires: writeDay(domain.expires),
  IsExpired: isExpired(domain, now),
  IsLocked: domain.isLocked,
  AutoRenew: domain.autoRenew,
  WhoisGuard: domain.whoisGuard,
  IsPremium: domain.isPremium,
  IsOurDNS: domain.dns === 'basic' || domain.dns === 'premium',
})
