import type { IncomingHttpHeaders } from 'node:http'
import { includesTag, isCurrent, readIfMatch } from '@domains-and-files/http'

/** Validators of a representation: its strong entity tag, and its last change in whole seconds since 1970. */
export interface Validators {
  etag: string
  /** Undefined while the date is not reliable: then conditions on dates are ignored. */
  changed: number | undefined
}

/**
 * Evaluates the preconditions of a GET or HEAD in the order of RFC 9110, 13.2.2. A malformed HTTP-date is ignored
 * (13.1.3, 13.1.4); a malformed entity tag matches nothing.
 */
export function evaluateConditions(
  headers: IncomingHttpHeaders,
  { etag, changed }: Validators,
): 'proceed' | 'not modified' | 'failed' {
  const ifMatch = headers['if-match']
  if (ifMatch !== undefined && !includesTag(readIfMatch(ifMatch), etag)) return 'failed'
  const unmodifiedSince = headers['if-unmodified-since']
  if (ifMatch === undefined && unmodifiedSince !== undefined && changed !== undefined) {
    if (changed > (readHttpDate(unmodifiedSince) ?? changed)) return 'failed'
  }
  const ifNoneMatch = headers['if-none-match']
  if (ifNoneMatch !== undefined) return isCurrent(ifNoneMatch, etag) ? 'not modified' : 'proceed'
  const modifiedSince = headers['if-modified-since']
  if (changed === undefined || modifiedSince === undefined) return 'proceed'
  return changed <= (readHttpDate(modifiedSince) ?? -1) ? 'not modified' : 'proceed'
}

/**
 * Whether a Range may be answered in parts: there is no If-Range, or it names this very representation by its strong
 * tag or its exact date (RFC 9110, 13.1.5).
 */
export function allowsParts(ifRange: string | undefined, { etag, changed }: Validators): boolean {
  if (ifRange === undefined || ifRange === etag) return true
  return changed !== undefined && readHttpDate(ifRange) === changed
}

/** Reads the three forms of an HTTP-date (RFC 9110, 5.6.7) as seconds since 1970; anything else is undefined. */
export function readHttpDate(text: string, now = Date.now()): number | undefined {
  const parts = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups
  if (!parts) return undefined
  const [hour = 0, minute = 0, second = 0] = (parts.time ?? '').split(':').map(Number)
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return undefined
  const month = months.indexOf(parts.month ?? '')
  const day = Number(parts.day)
  const year = parts.year?.length === 2 ? fullYear(Number(parts.year), now) : Number(parts.year)
  const date = new Date(0)
  date.setUTCFullYear(year, month, day)
  if (date.getUTCDate() !== day) return undefined
  return date.setUTCHours(hour, minute, second) / 1000
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const time = '(?<time>\\d\\d:\\d\\d:\\d\\d)'
const month = `(?<month>${months.join('|')})`
const weekday = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const longWeekday = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const imfFixdate = RegExp(`^${weekday}, (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} GMT$`)
const rfc850 = RegExp(`^${longWeekday}, (?<day>\\d\\d)-${month}-(?<year>\\d\\d) ${time} GMT$`)
const asctime = RegExp(`^${weekday} ${month} (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})$`)

// A two-digit year more than 50 years in the future is in the past (RFC 9110, 5.6.7).
function fullYear(lastDigits: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear()
  const year = thisYear - (thisYear % 100) + lastDigits
  return year > thisYear + 50 ? year - 100 : year
}
