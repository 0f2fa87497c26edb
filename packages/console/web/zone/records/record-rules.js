/**
 * The service's rules for one record among others, checked while somebody types. The service has the last word; these
 * only say early what it would say. Pure.
 * @typedef {{ name?: string, address?: string, ttl?: string, mx_pref?: string }} Faults
 */

/**
 * @param {Api.RecordInput} record
 * @param {string} domain
 * @param {readonly Api.RecordInput[]} others the rest of the zone
 */
export function findFaults(record, domain, others) {
  /** @type {Faults} */
  const faults = {}
  const name = nameFault(record.name, domain) ?? placeFault(record, others)
  const address =
    addressFault(record, domain) ?? (isDuplicate(record, others) ? 'The same record is already there' : undefined)
  if (name) faults.name = name
  if (address) faults.address = address
  if (!isBetween(record.ttl, 60, 60_000)) faults.ttl = 'Must be between 60 and 60000 seconds'
  if (record.type === 'MX' && !isBetween(record.mx_pref, 0, 65_535)) faults.mx_pref = 'Must be between 0 and 65535'
  return faults
}

/** What the first rule that is broken says. @param {[isBroken: unknown, fault: string][]} rules */
const firstOf = (rules) => rules.find(([isBroken]) => isBroken)?.[1]

/** @param {string} name @param {string} domain */
function nameFault(name, domain) {
  if (name === '@') return undefined
  const lower = name.toLowerCase()
  const short = lower === domain ? '@' : lower.slice(0, -domain.length - 1)
  const labels = lower.split('.')
  const bad = labels.find((label) => label !== '*' && !isLabel(label))
  return firstOf([
    [name === '', 'Write a name, or @ for the domain itself'],
    [`.${lower}`.endsWith(`.${domain}`), `Leave out the domain: write ${short || '@'}`],
    [lower.length > 60, 'Must have at most 60 characters'],
    [labels.includes(''), 'A part between dots is empty'],
    [labels.includes('*', 1), '* is allowed as the first part only'],
    [bad, `“${bad}” may have letters, digits, - and _ only, up to 63, not - at its ends`],
  ])
}

/** @param {string} label */
const isLabel = (label) => label.length <= 63 && /^(?!-)[\p{L}\p{N}\p{M}_-]+(?<!-)$/u.test(label)

const redirects = ['URL', 'URL301', 'FRAME']

/** Types that cannot be at one name, or in one zone. @type {[types: string[], others: string[], where: 'name' | 'zone'][]} */
const enemies = [
  [['ALIAS'], ['A', 'AAAA'], 'name'],
  [['A', 'AAAA'], ['ALIAS'], 'name'],
  [redirects, redirects, 'name'],
  [['MXE'], ['MX', 'MXE'], 'zone'],
  [['MX'], ['MXE'], 'zone'],
]

/** @param {Api.RecordInput} record @param {readonly Api.RecordInput[]} others */
function placeFault({ name, type }, others) {
  const beside = others.filter((other) => other.name === name.toLowerCase())
  const types = [...new Set(beside.map((other) => other.type))]
  const isApex = name === '@'
  return firstOf([
    [type === 'CNAME' && isApex, 'CNAME is not allowed at @: use ALIAS'],
    [type === 'NS' && isApex, 'NS is not allowed at @: the nameservers belong to the registration'],
    [type === 'MXE' && !isApex, 'MXE is allowed at @ only'],
    [type === 'CNAME' && types[0], `CNAME must be alone: there is ${types.join(', ')} at this name`],
    [types.includes('CNAME'), 'There is a CNAME at this name, which must be alone'],
    ...enemies.map(([mine, foes, where]) => {
      const foe = (where === 'name' ? beside : others).find((other) => foes.includes(other.type))
      const fault = `${type} is not allowed beside ${foe?.type}, of which this ${where} has one`
      return /** @type {[boolean, string]} */ ([Boolean(foe) && mine.includes(type), fault])
    }),
  ])
}

/** @param {Api.RecordInput} record @param {string} domain */
function addressFault({ type, name, address }, domain) {
  if (address === '') return 'Write a value'
  if (type === 'CAA') return caaFault(address)
  if (redirects.includes(type)) return urlFault(address)
  if (['ALIAS', 'CNAME', 'MX', 'NS'].includes(type)) return targetFault(address, type, name, domain)
  const isIpv4Type = type === 'A' || type === 'MXE'
  // Of other types the service has the last word.
  return firstOf([
    [isIpv4Type && !isIpv4(address), 'Must be an IPv4 address such as 192.0.2.10'],
    [type === 'AAAA' && !isIpv6(address), 'Must be an IPv6 address such as 2001:db8::10'],
    [type === 'TXT' && address.length > 2500, 'Must have at most 2500 characters'],
  ])
}

/** @param {string} address @param {string} type @param {string} name @param {string} domain */
function targetFault(address, type, name, domain) {
  const target = address.toLowerCase().replace(/\.$/, '')
  const isHost = target.length <= 255 && target.split('.').every(isLabel)
  const itself = name === '@' ? domain : `${name.toLowerCase()}.${domain}`
  return firstOf([
    [isIpv4(target) || isIpv6(target), 'Must be a host name, not an IP address'],
    [!isHost, 'Must be a host name such as www.example.net'],
    [!target.includes('.'), `Write the whole name, such as ${target}.${domain}`],
    [type === 'CNAME' && target === itself, 'Must not point at itself'],
  ])
}

/** @param {string} address */
function caaFault(address) {
  const [, flags, tag = '', value = ''] = /^(\d{1,3})\s+(\w+)\s+(.+)$/.exec(address.trim()) ?? []
  const isReport = tag.toLowerCase() === 'iodef'
  const isKnown = isReport || /^issue(?:wild)?$/i.test(tag)
  const isContact = /^(?:mailto:|https?:\/\/)\S+$/i.test(value.replace(/^"|"$/g, ''))
  return firstOf([
    [!flags || Number(flags) > 255, 'Must be like 0 issue "letsencrypt.org"'],
    [!isKnown, 'The tag must be issue, issuewild or iodef'],
    [isReport && !isContact, 'iodef needs a mailto: or http(s) address'],
  ])
}

/** @param {string} address */
function urlFault(address) {
  const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null
  return firstOf([
    [!url, 'Must be a web address such as https://example.net/'],
    [url?.username || url?.password, 'Must have no user name or password'],
    [address.length > 255, 'Must have at most 255 characters'],
  ])
}

/** @param {string} text */
const isIpv4 = (text) =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) &&
  text.split('.').every((part) => String(Number(part)) === part && Number(part) <= 255)

/** @param {string} text */
const isIpv6 = (text) => text.includes(':') && !text.includes('%') && URL.canParse(`http://[${text}]/`)

/** @param {Api.RecordInput} record @param {readonly Api.RecordInput[]} others */
function isDuplicate({ name, type, address }, others) {
  const plain = (/** @type {string} */ text) => (type === 'TXT' ? text : text.toLowerCase().replace(/\.$/, ''))
  return others.some(
    (other) => other.name === name.toLowerCase() && other.type === type && plain(other.address) === plain(address),
  )
}

/** @param {number | undefined} value @param {number} least @param {number} most */
const isBetween = (value, least, most) =>
  value === undefined || (Number.isInteger(value) && value >= least && value <= most)
