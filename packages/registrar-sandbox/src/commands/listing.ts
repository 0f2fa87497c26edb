import type { Account } from '../account/account.ts'
import type { Domain } from '../account/domain.ts'
import { compare } from '../account/zone.ts'
import * as errors from './errors.ts'
import type { Params } from './parameters.ts'
import { type Element, element } from './xml.ts'

const expiringDays = 30
const maxTermLength = 70
const maxChecked = 50

const orders = new Map<string, (a: Domain, b: Domain) => number>([
  ['NAME', (a, b) => compare(a.name, b.name)],
  ['EXPIREDATE', (a, b) => compare(a.expires, b.expires)],
  ['CREATEDATE', (a, b) => compare(a.created, b.created)],
])

/** namecheap.domains.getList; without FreeDNS domains, which are not registered in this account. */
export function getList(account: Account, params: Params, now: number): Element[] {
  const isListed = readListType(params, now)
  const term = (params.get('SearchTerm') ?? '').toLowerCase()
  if (term.length > maxTermLength) throw errors.searchTermInvalid()
  const page = readNumber(params.get('Page') ?? '1', 1, Number.MAX_SAFE_INTEGER)
  if (page === undefined) throw errors.pageInvalid()
  const size = readNumber(params.get('PageSize') ?? '20', 10, 100)
  if (size === undefined)
    throw errors.pageSizeInvalid(describePage([], { total: 0, page: 0, size: 0 }, now))
  const order = readOrder(params)
  const found = account.domains.filter(
    (domain) => domain.dns !== 'free' && domain.name.includes(term) && isListed(domain),
  )
  const shown = found.sort(order).slice((page - 1) * size, page * size)
  return describePage(shown, { total: found.length, page, size }, now)
}

function describePage(
  shown: Domain[],
  { total, page, size }: { total: number; page: number; size: number },
  now: number,
): Element[] {
  return [
    element(
      'DomainGetListResult',
      {},
      shown.map((domain) => describeDomain(domain, now)),
    ),
    element('Paging', {}, [
      element('TotalItems', {}, String(total)),
      element('CurrentPage', {}, String(page)),
      element('PageSize', {}, String(size)),
    ]),
  ]
}

/** namecheap.domains.check; a name is available unless it is in this account or `example.…`. */
export function check(account: Account, params: Params): Element[] {
  const names = params.require('DomainList').toLowerCase().split(',')
  if (names.length > maxChecked) throw errors.parameterInvalid('DomainList', 'more than 50 names')
  return names.map((name) => {
    const domain = name.trim()
    const isTaken = account.find(domain) !== undefined || domain.startsWith('example.')
    return element('DomainCheckResult', {
      Domain: domain,
      Available: !isTaken,
      ErrorNo: 0,
      Description: '',
      IsPremiumName: false,
      PremiumRegistrationPrice: 0,
      PremiumRenewalPrice: 0,
      PremiumRestorePrice: 0,
      PremiumTransferPrice: 0,
      IcannFee: 0,
      EapFee: 0,
    })
  })
}

/** namecheap.domains.getTldList, with a few suffixes. */
export function getTlds(): Element[] {
  const suffixes = [
    'com',
    'net',
    'org',
    'io',
    'dev',
    'shop',
    'photography',
    'co.uk',
    'de',
    'it.com',
  ]
  const tlds = suffixes.map((name) => element('Tld', { Name: name, ...terms }, `.${name} domains`))
  return [element('Tlds', {}, tlds)]
}

/** namecheap.users.getBalances */
export function getBalances(): Element[] {
  return [
    element('UserGetBalancesResult', {
      Currency: 'USD',
      AvailableBalance: '84.20',
      AccountBalance: '84.20',
      EarnedAmount: '0.00',
      WithdrawableAmount: '0.00',
      FundsRequiredForAutoRenew: '12.98',
    }),
  ]
}

/** Whether the last day of the domain has passed. */
export function isExpired(domain: Domain, now: number): boolean {
  return daysLeft(domain, now) < 0
}

/** A day as the registrar writes it: MM/DD/YYYY. */
export function writeDay(day: string): string {
  const [year, month, date] = day.split('-')
  return `${month}/${date}/${year}`
}

const terms = {
  NonRealTime: false,
  MinRegisterYears: 1,
  MaxRegisterYears: 10,
  MinRenewYears: 1,
  MaxRenewYears: 10,
  MinTransferYears: 1,
  MaxTransferYears: 1,
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

function describeDomain(domain: Domain, now: number): Element {
  return element('Domain', {
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
}

function readListType(params: Params, now: number): (domain: Domain) => boolean {
  const type = (params.get('ListType') ?? 'ALL').toUpperCase()
  if (type === 'ALL') return () => true
  if (type === 'EXPIRED') return (domain) => isExpired(domain, now)
  if (type !== 'EXPIRING') throw errors.listTypeInvalid()
  return (domain) => !isExpired(domain, now) && daysLeft(domain, now) <= expiringDays
}

function readOrder(params: Params): (a: Domain, b: Domain) => number {
  const sortBy = (params.get('SortBy') ?? 'NAME').toUpperCase()
  const order = orders.get(sortBy.replace(/_DESC$/, ''))
  if (!order) throw errors.sortByInvalid()
  const sign = sortBy.endsWith('_DESC') ? -1 : 1
  return (a, b) => sign * order(a, b) || compare(a.name, b.name)
}

function readNumber(text: string, min: number, max: number): number | undefined {
  if (!/^\d{1,15}$/.test(text)) return undefined
  const number = Number(text)
  return number >= min && number <= max ? number : undefined
}

function daysLeft(domain: Domain, now: number): number {
  return Math.floor(Date.parse(domain.expires) / 86_400_000) - Math.floor(now / 86_400_000)
}
