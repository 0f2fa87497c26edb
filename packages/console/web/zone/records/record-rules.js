/**
 * The service's rules for one record among others, checked while somebody types. The service has the last word; these
 * only say early what it would say. Pure.
 * @typedef {{ name?: string, address?: string, ttl?: string, mx_pref?: string }} Faults
 */

/**
 * @param {Api.RecordInput} record
 * @param {string} domain
 * @param {readonly Api.RecordInput[]} others the rest of the zone
 * @returns {Faults}
 */
export function findFaults(record, domain, others) {
  /** @type {Faults} */
  const faults = {}
  const name = nameFault(record.name, domain) ?? placeFault(record, others)
  const address =
    addressFault(record, domain) ??
    (isDuplicate(record, others) ? 'The same record is already there' : undefined)
  if (name) faults.name = name
  if (address) faults.address = address
  if (!isBetween(record.ttl, 60, 60_000)) faults.ttl = 'Must be between 60 and 60000 seconds'
  if (record.type === 'MX' && !isBetween(record.mx_pref, 0, 65_535))
    faults.mx_pref = 'Must be between 0 and 65535'
  return faults
}

/** @param {string} name @param {string} domain @returns {string | undefined} */
function nameFault(name, domain) {
  if (name === '') return 'Write a name, or @ for the domain itself'
  if (name === '@') return undefined
  const lower = name.toLowerCase()
  if (lower === domain || lower.endsWith(`.${domain}`)) {
    const short = lower.slice(0, -domain.length - 1) || '@'
    return `Leave out the domain: write ${short}`
  }
  if (lower.length > 60) return 'Must have at most 60 characters'
  const labels = lower.split('.')
  if (labels.some((label) => label === '')) return 'A part between dots is empty'
  if (labels.some((label, at) => label === '*' && at > 0))
    return '* is allowed as the first part only'
  const bad = labels.find((label) => label !== '*' && !isLabel(label))
  return bad
    ? `“${bad}” may have letters, digits, - and _ only, up to 63, not - at its ends`
    : undefined
}

/** @param {string} label */
const isLabel = (label) =>
  label.length <= 63 &&
  !label.startsWith('-') &&
  !label.endsWith('-') &&
  /^[\p{L}\p{N}\p{M}_-]+$/u.test(label)

const redirects = ['URL', 'URL301', 'FRAME']

/** Types that cannot be at one name, or in one zone. @type {[types: string[], others: string[], where: 'name' | 'zone'][]} */
const enemies = [
  [['ALIAS'], ['A', 'AAAA'], 'name'],
  [['A', 'AAAA'], ['ALIAS'], 'name'],
  [redirects, redirects, 'name'],
  [['MXE'], ['MX', 'MXE'], 'zone'],
  [['MX'], ['MXE'], 'zone'],
]

/** @param {Api.RecordInput} record @param {readonly Api.RecordInput[]} others @returns {string | undefined} */
function placeFault({ name, type }, others) {
  const beside = others.filter((other) => other.name === name.toLowerCase())
  if (type === 'CNAME' && name === '@') return 'CNAME is not allowed at @: use ALIAS'
  if (type === 'NS' && name === '@')
    return 'NS is not allowed at @: the nameservers belong to the registration'
  if (type === 'MXE' && name !== '@') return 'MXE is allowed at @ only'
  if (type === 'CNAME' && beside.length > 0)
    return `CNAME must be alone: there is ${[...new Set(beside.map((other) => other.type))].join(', ')} at this name`
  if (beside.some((other) => other.type === 'CNAME'))
    return 'There is a CNAME at this name, which must be alone'
  for (const [types, foes, where] of enemies) {
    const foe = (where === 'name' ? beside : others).find((other) => foes.includes(other.type))
    if (types.includes(type) && foe)
      return `${type} is not allowed beside ${foe.type}, of which this ${where} has one`
  }
  return undefined
}

/** @param {Api.RecordInput} record @param {string} domain @returns {string | undefined} */
function addressFault({ type, name, address }, domain) {
  if (address === '') return 'Write a value'
  switch (type) {
    case 'A':
    case 'MXE':
      return isIpv4(address) ? undefined : 'Must be an IPv4 address such as 192.0.2.10'
    case 'AAAA':
      return isIpv6(address) ? undefined : 'Must be an IPv6 address such as 2001:db8::10'
    case 'TXT':
      return address.length <= 2500 ? undefined : 'Must have at most 2500 characters'
    case 'CAA':
      return caaFault(address)
    case 'URL':
    case 'URL301':
    case 'FRAME':
      return urlFault(address)
    case 'ALIAS':
    case 'CNAME':
    case 'MX':
    case 'NS':
      return targetFault(address, type, name, domain)
    default: // The service has the last word.
      return undefined
  }
}

/** @param {string} address @param {string} type @param {string} name @param {string} domain @returns {string | undefined} */
function targetFault(address, type, name, domain) {
  const target = address.toLowerCase().replace(/\.$/, '')
  if (isIpv4(target) || isIpv6(target)) return 'Must be a host name, not an IP address'
  if (target.length > 255 || !target.split('.').every(isLabel))
    return 'Must be a host name such as www.example.net'
  if (!target.includes('.')) return `Write the whole name, such as ${target}.${domain}`
  const itself = name === '@' ? domain : `${name.toLowerCase()}.${domain}`
  return type === 'CNAME' && target === itself ? 'Must not point at itself' : undefined
}

/** @param {string} address @returns {string | undefined} */
function caaFault(address) {
  const [, flags, tag = '', value = ''] = /^(\d{1,3})\s+(\w+)\s+(.+)$/.exec(address.trim()) ?? []
  if (!flags || Number(flags) > 255) return 'Must be like 0 issue "letsencrypt.org"'
  if (!['issue', 'issuewild', 'iodef'].includes(tag.toLowerCase()))
    return 'The tag must be issue, issuewild or iodef'
  const text = value.replace(/^"|"$/g, '')
  const isReport = tag.toLowerCase() === 'iodef'
  return isReport && !/^(?:mailto:|https?:\/\/)\S+$/i.test(text)
    ? 'iodef needs a mailto: or http(s) address'
    : undefined
}

/** @param {string} address @returns {string | undefined} */
function urlFault(address) {
  const url = URL.parse(address)
  if (!url || !/^https?:\/\//i.test(address))
    return 'Must be a web address such as https://example.net/'
  if (url.username || url.password) return 'Must have no user name or password'
  return address.length <= 255 ? undefined : 'Must have at most 255 characters'
}

/** @param {string} text */
const isIpv4 = (text) =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) &&
  text.split('.').every((part) => String(Number(part)) === part && Number(part) <= 255)

/** @param {string} text */
const isIpv6 = (text) =>
  text.includes(':') && !text.includes('%') && URL.canParse(`http://[${text}]/`)

/** @param {Api.RecordInput} record @param {readonly Api.RecordInput[]} others */
function isDuplicate({ name, type, address }, others) {
  const same = address.toLowerCase().replace(/\.$/, '')
  return others.some(
    (other) =>
      other.name === name.toLowerCase() &&
      other.type === type &&
      (type === 'TXT'
        ? other.address === address
        : other.address.toLowerCase().replace(/\.$/, '') === same),
  )
}

/** @param {number | undefined} value @param {number} least @param {number} most */
const isBetween = (value, least, most) =>
  value === undefined || (Number.isInteger(value) && value >= least && value <= most)
