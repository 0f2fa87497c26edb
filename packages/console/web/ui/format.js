const units = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** 1536 → "1.5 KB". @param {number} bytes */
export function formatBytes(bytes) {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = unit > 0 && value < 100 ? 1 : 0
  return `${value.toFixed(digits)} ${bytes === 1 ? 'byte' : units[unit]}`
}

const numbers = new Intl.NumberFormat('en')

/** 12345 → "12,345". @param {number} value */
export const formatNumber = (value) => numbers.format(value)

/** "1 file", "12,345 files". @param {number} count @param {string} noun @param {string} [plural] */
export const formatCount = (count, noun, plural = `${noun}s`) =>
  `${formatNumber(count)} ${count === 1 ? noun : plural}`

const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium' })
const times = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })

// A calendar date is the same day everywhere.
const days = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })

/** "Nov 21, 2026", of an instant in local time. @param {string | null | undefined} date */
export const formatDate = (date) =>
  date ? (date.length === 10 ? days : dates).format(new Date(date)) : '—'

/** "Nov 21, 2026, 8:15 PM", local time. @param {string | null | undefined} instant */
export const formatTime = (instant) => (instant ? times.format(new Date(instant)) : '—')

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const steps = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

/** "3 hours ago". @param {string} instant @param {number} [now] */
export function formatAge(instant, now = Date.now()) {
  const seconds = (new Date(instant).getTime() - now) / 1000
  const step = steps.find(([, length]) => Math.abs(seconds) >= length)
  return step ? relative.format(Math.trunc(seconds / step[1]), step[0]) : 'just now'
}

/** "45 s", "3 min", "2 h". @param {number} seconds */
export function formatDuration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}

const natural = new Intl.Collator('en', { numeric: true })

/** "part 2" before "part 10". @param {{ name: string }} left @param {{ name: string }} right */
export const byName = (left, right) => natural.compare(left.name, right.name)

/** Days from now until a calendar date. @param {string} date @param {number} [now] */
export const daysUntil = (date, now = Date.now()) =>
  Math.ceil((new Date(date).getTime() - now) / 86_400_000)

/** 1800 → "30 min", 1799 → "automatic". @param {number} ttl */
export function formatTtl(ttl) {
  if (ttl === 1799) return 'automatic'
  if (ttl % 3600 === 0) return `${ttl / 3600} h`
  return ttl % 60 === 0 ? `${ttl / 60} min` : `${ttl} s`
}
