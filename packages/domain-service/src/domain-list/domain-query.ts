import { domainToUnicode } from 'node:url'
import type { ListQuery } from '@domains-and-files/registrar-sandbox/protocol'
import type { DomainEntry } from '../registrar/responses.ts'

export type SortKey = ListQuery['sortBy']

const dayMs = 86_400_000
// The registrar does not document its own limit.
const expiringDays = 30

/** Sorts by a key, then by name; domains of unknown date come last. */
export function sortDomains(domains: readonly DomainEntry[], sortBy: SortKey): DomainEntry[] {
  const isDescending = sortBy.endsWith('_DESC')
  const byName = (a: DomainEntry, b: DomainEntry) => compare(a.name, b.name)
  if (sortBy === 'NAME' || sortBy === 'NAME_DESC')
    return [...domains].sort((a, b) => (isDescending ? byName(b, a) : byName(a, b)))
  const field = sortBy.startsWith('EXPIRE') ? 'expires_on' : 'created_on'
  return [...domains].sort((a, b) => {
    const [left, right] = [a[field], b[field]]
    if (left === null || right === null)
      return Number(left === null) - Number(right === null) || byName(a, b)
    return (isDescending ? compare(right, left) : compare(left, right)) || byName(a, b)
  })
}

/** Whether a domain is of this list type at this time (milliseconds since 1970, days in UTC). */
export function isOfType(
  domain: DomainEntry,
  listType: ListQuery['listType'],
  now: number,
): boolean {
  if (listType === 'ALL') return true
  const daysLeft =
    domain.expires_on === null
      ? undefined
      : Math.floor(Date.parse(domain.expires_on) / dayMs) - Math.floor(now / dayMs)
  const isExpired = domain.is_expired ?? (daysLeft !== undefined && daysLeft < 0)
  if (listType === 'EXPIRED') return isExpired
  return !isExpired && daysLeft !== undefined && daysLeft <= expiringDays
}

/** Whether the name, in A-labels or in Unicode, contains the term in any case. */
export function matchesTerm({ name }: DomainEntry, term: string | undefined): boolean {
  if (term === undefined) return true
  const wanted = term.toLowerCase()
  return name.includes(wanted) || (name.includes('xn--') && domainToUnicode(name).includes(wanted))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
