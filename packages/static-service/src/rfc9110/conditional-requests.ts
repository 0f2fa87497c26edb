import type { IncomingHttpHeaders } from 'node:http'
import { includesTag, isCurrent, readIfMatch } from '@domains-and-files/http'

/** What a representation is recognised by: its strong entity tag, and its last change, in whole seconds since 1970. */
export interface Validators {
  etag: string
  changed: number
}

/**
 * Judges the preconditions of a GET or HEAD in the order of RFC 9110, 13.2.2. A date that is not an HTTP-date is
 * ignored (13.1.3, 13.1.4); an element of a list that is not an entity tag matches nothing.
 */
export function evaluateConditions(
  headers: IncomingHttpHeaders,
  own: Validators,
): 'proceed' | 'not modified' | 'failed' {
  const ifMatch = headers['if-match']
  if (ifMatch !== undefined && !includesTag(readIfMatch(ifMatch), own.etag)) return 'failed'
  const unmodifiedSince = readHttpDate(headers['if-unmodified-since'])
  const hasChanged = unmodifiedSince !== undefined && own.changed > unmodifiedSince
  if (ifMatch === undefined && hasChanged) return 'failed'

  const ifNoneMatch = headers['if-none-match']
  if (ifNoneMatch !== undefined) {
    return isCurrent(ifNoneMatch, own.etag) ? 'not modified' : 'proceed'
  }
  const modifiedSince = readHttpDate(headers['if-modified-since'])
  const isUnchanged = modifiedSince !== undefined && own.changed <= modifiedSince
  return isUnchanged ? 'not modified' : 'proceed'
}

/**
 * Whether a Range may be answered in parts: there is no If-Range, or it names this very representation by its strong
 * tag or by its exact date (RFC 9110, 13.1.5).
 */
export function allowsParts(ifRange: string | undefined, own: Validators): boolean {
  if (ifRange === undefined || ifRange === own.etag) return true
  return readHttpDate(ifRange) === own.changed
}

/**
 * Reads an HTTP-date in its three forms (RFC 9110, 5.6.7) as seconds since 1970; undefined for all else, be it a date
 * that `Date.parse` would take.
 */
export function readHttpDate(text: string | undefined, now = Date.now()): number | undefined {
  if (text === undefined) return undefined
  const parts = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups
  if (!parts) return undefined
  const [hour, minute, second] = (parts.time ?? '').split(':').map(Number)
  if (hour === undefined || minute === undefined || second === undefined) return undefined
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

// Two digits that would mean more than 50 years from now mean the past (RFC 9110, 5.6.7).
function fullYear(lastDigits: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear()
  const year = thisYear - (thisYear % 100) + lastDigits
  return year > thisYear + 50 ? year - 100 : year
}
