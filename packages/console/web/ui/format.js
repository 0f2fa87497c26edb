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
export const formatCount = (count, noun, plural = `${noun}s`) => `${formatNumber(count)} ${count === 1 ? noun : plural}`

/** "3 added · 1 removed". @param {Record<string, number>} counts by word */
export const formatCounts = (counts) =>
  Object.entries(counts)
    .flatMap(([word, count]) => (count > 0 ? `${formatNumber(count)} ${word}` : []))
    .join(' · ') || 'nothing'

const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium' })
const times = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })

// A calendar date is the same day everywhere.
const days = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })

/** "Nov 21, 2026", of an instant in local time. @param {string | null | undefined} date */
export const formatDate = (date) => (date ? (date.length === 10 ? days : dates).format(new Date(date)) : '—')

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

/** The domain itself first: the order of names has "_dmarc" before "@". @type {typeof byName} */
export const byHostName = (left, right) => Number(right.name === '@') - Number(left.name === '@') || byName(left, right)

/** Days from now until a calendar date. @param {string} date @param {number} [now] */
export const daysUntil = (date, now = Date.now()) => Math.ceil((new Date(date).getTime() - now) / 86_400_000)

/** 1800 → "30 min", 1799 → "automatic". @param {number} ttl */
export function formatTtl(ttl) {
  if (ttl === 1799) return 'automatic'
  if (ttl % 3600 === 0) return `${ttl / 3600} h`
  return ttl % 60 === 0 ? `${ttl / 60} min` : `${ttl} s`
}

/** A text with the names in it as people write them: "xn--mnchen-3ya.example" → "münchen.example". @param {string} text */
export const toUnicode = (text) =>
  text.replace(/\bxn--([a-z0-9-]+)/gi, (label, code) => decodePunycode(code.toLowerCase()) ?? label)

/** RFC 3492, 6.2. @param {string} code letters, digits, hyphens @returns {string | undefined} where it is malformed */
function decodePunycode(code) {
  const split = code.lastIndexOf('-')
  const output = [...code.slice(0, Math.max(0, split))]
  // The digits are a to z, then 0 to 9.
  const digits = [...code.slice(split + 1)].map((digit) => (Number.parseInt(digit, 36) + 26) % 36)
  let [point, at, bias] = [128, 0, 72]
  for (; digits.length > 0; at += 1) {
    const before = at
    for (let [weight, k] = [1, 36]; ; k += 36) {
      const digit = digits.shift()
      if (digit === undefined) return undefined
      at += digit * weight
      const threshold = Math.min(26, Math.max(1, k - bias))
      if (digit < threshold) break
      weight *= 36 - threshold
    }
    const length = output.length + 1
    bias = adapt(at - before, length, before === 0)
    point += Math.floor(at / length)
    at %= length
    if (point > 0x10_ff_ff) return undefined
    output.splice(at, 0, String.fromCodePoint(point))
  }
  return output.join('')
}

/** @param {number} delta @param {number} length @param {boolean} isFirst */
function adapt(delta, length, isFirst) {
  let left = isFirst ? Math.floor(delta / 700) : delta >> 1
  left += Math.floor(left / length)
  let k = 0
  for (; left > 455; k += 36) left = Math.floor(left / 35)
  return k + Math.floor((36 * left) / (left + 38))
}

/** "home, vpn" → ["home", "vpn"]. @param {string} text */
export const splitList = (text) => text.split(/[\s,]+/).filter(Boolean)

/** "our documents/, site/" → ["our documents/", "site/"]. @param {string} text */
export const splitFolders = (text) => text.split(/\s*,\s*/).filter(Boolean)
