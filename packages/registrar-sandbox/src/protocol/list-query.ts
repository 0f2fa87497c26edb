import type { Params } from './parameters.ts'
import { compare, ErrorResponse, type Listed, listResult } from './responses.ts'

export const listTypes = ['ALL', 'EXPIRING', 'EXPIRED'] as const
const sortColumns = ['NAME', 'EXPIREDATE', 'CREATEDATE'] as const
export const sortKeys = sortColumns.flatMap((key) => [key, `${key}_DESC`] as const)

export interface ListQuery {
  listType: (typeof listTypes)[number]
  searchTerm: string | undefined
  sortBy: (typeof sortKeys)[number]
  page: number
  pageSize: number
}

/** The parameters of getList. @throws {ErrorResponse} for the first that is invalid. */
export function readListQuery(params: Params): ListQuery {
  const listType = oneOf(listTypes, params.get('ListType') ?? 'ALL')
  if (!listType) throw new ErrorResponse('2011169', 'Parameter ListType is invalid')
  const searchTerm = params.get('SearchTerm')
  if ((searchTerm ?? '').length > 70) throw new ErrorResponse('2011170', 'Parameter SearchTerm is too long')
  const page = readNumber(params.get('Page') ?? '1', 1, Number.MAX_SAFE_INTEGER)
  if (page === undefined) throw new ErrorResponse('2011171', 'Parameter Page is invalid')
  const pageSize = readNumber(params.get('PageSize') ?? '20', 10, 100)
  if (pageSize === undefined) {
    const skeleton = listResult([], { total: 0, page: 0, size: 0 })
    throw new ErrorResponse('2013275', 'Parameter PageSize is OutOfRange', { skeleton })
  }
  const sortBy = oneOf(sortKeys, params.get('SortBy') ?? 'NAME')
  if (!sortBy) throw new ErrorResponse('2011173', 'Parameter SortBy is invalid')
  return { listType, searchTerm, sortBy, page, pageSize }
}

const oneOf = <Value extends string>(values: readonly Value[], text: string) =>
  values.find((value) => value === text.toUpperCase())

function readNumber(text: string, min: number, max: number): number | undefined {
  if (!/^\d{1,15}$/.test(text)) return undefined
  const number = Number(text)
  return number >= min && number <= max ? number : undefined
}

/** Sorts by a key, then by name; domains of unknown date come last. */
export function sortDomains<Entry extends Listed>(domains: readonly Entry[], sortBy: ListQuery['sortBy']): Entry[] {
  const dates = sortBy.startsWith('EXPIRE') ? 'expires_on' : 'created_on'
  const field = sortBy.startsWith('NAME') ? 'name' : dates
  const sign = sortBy.endsWith('_DESC') ? -1 : 1
  return domains.toSorted((one, other) => {
    const [left, right] = [one[field], other[field]]
    const order =
      left === null || right === null ? Number(left === null) - Number(right === null) : sign * compare(left, right)
    return order || compare(one.name, other.name)
  })
}

const dayMs = 86_400_000
// The registrar does not document its own limit.
const expiringDays = 30

/** Whether a domain is of this list type at this time (milliseconds since 1970, days in UTC). */
export function isOfType(domain: Listed, listType: ListQuery['listType'], now: number): boolean {
  if (listType === 'ALL') return true
  // An unknown date gives NaN, whose comparisons are all false.
  const daysLeft = Math.floor(Date.parse(domain.expires_on ?? '') / dayMs) - Math.floor(now / dayMs)
  const isExpired = domain.is_expired ?? daysLeft < 0
  return listType === 'EXPIRED' ? isExpired : !isExpired && daysLeft <= expiringDays
}
