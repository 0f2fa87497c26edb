import { recordTypes } from './record-types.js'

// Names of columns in exports and sheets of others, by the field that they are here.
const columns = {
  name: ['name', 'host', 'hostname', 'record', 'record name'],
  type: ['type', 'record type'],
  address: ['value', 'address', 'content', 'data', 'target', 'points to'],
  ttl: ['ttl', 'ttl (seconds)'],
  pref: ['priority', 'preference', 'pref', 'prio', 'mx_pref'],
}
const usualOrder = Object.keys(columns)

/**
 * Rows of a spreadsheet (pasted, with tabs) or of a CSV file as lines of a zone file, each in its place; any other text
 * as it is. Without a row of column names: name, type, value, TTL, preference. Pure.
 * @param {string} text
 * @param {string} domain
 */
export function tableToZoneFile(text, domain) {
  const lines = text.split(/\r?\n/)
  const first = lines.find((line) => line.trim() !== '') ?? ''
  const separator = first.includes('\t') ? '\t' : first.includes(';') ? ';' : ','
  const head = cellsOf(first, separator)
  const named = head.map((cell) => fieldOf(cell.toLowerCase()))
  const isHead = ['name', 'type', 'address'].every((field) => named.includes(field))
  if (!isHead && (head.length < 3 || !recordTypes[head[1]?.toUpperCase() ?? ''])) return text
  const fields = isHead ? named : usualOrder
  return lines
    .map((line) => {
      if (line.trim() === '' || (isHead && line === first)) return ''
      const cells = cellsOf(line, separator)
      const row = Object.fromEntries(fields.map((field, at) => [field, cells[at] ?? '']))
      return toZoneLine(row, domain)
    })
    .join('\n')
}

/** @param {string} title */
const fieldOf = (title) => Object.entries(columns).find(([, titles]) => titles.includes(title))?.[0] ?? ''

// The comment of the service's own zone files, which takes every type.
/** @param {Record<string, string>} row @param {string} domain */
function toZoneLine({ name = '', type = '', address = '', ttl = '', pref = '' }, domain) {
  const full = name.toLowerCase().replace(/\.$/, '')
  const short = full.endsWith(`.${domain}`) ? full.slice(0, -domain.length - 1) : full
  const isMail = type.toUpperCase() === 'MX'
  const [, own = pref, target = address] = (isMail && /^(\d+)\s+(\S+)$/.exec(address)) || /** @type {string[]} */ ([])
  const label = quote(short === '' || short === domain ? '@' : short)
  const seconds = /^\d+$/.test(ttl) ? ttl : '1800'
  const preference = isMail && /^\d+$/.test(own) ? ` ${own}` : ''
  return `; domain-service record ${label} ${seconds} ${type.toUpperCase()} ${quote(target)}${preference}`
}

/** @param {string} text */
const quote = (text) => `"${text.replace(/["\\]/g, '\\$&')}"`

/** Cells as RFC 4180 has them, of one line. @param {string} line @param {string} separator */
function cellsOf(line, separator) {
  const pattern = new RegExp(`${separator}(?:"((?:[^"]|"")*)"|([^${separator}]*))`, 'g')
  return [...`${separator}${line}`.matchAll(pattern)].map(([, quoted, plain = '']) =>
    (quoted?.replaceAll('""', '"') ?? plain).trim(),
  )
}
