// Escapes of zone files (RFC 1035, 5.1): \X is the character X, \DDD the octet of that decimal number.

/**
 * The text of tokens in sequence, their octets together read as UTF-8; undefined where an escape or the UTF-8 is
 * malformed.
 */
export function decodeText(tokens: string[]): string | undefined {
  const octets = tokens.map(toOctets)
  const whole = octets.filter((each) => each !== undefined)
  if (whole.length < octets.length) return undefined
  try {
    return decoder.decode(Buffer.concat(whole))
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

// As latin1, each character of the string is one octet.
function toOctets(token: string): Buffer | undefined {
  const octets = Buffer.from(token).toString('latin1')
  if (!octets.includes('\\')) return Buffer.from(token)
  let isMalformed = false
  const decoded = octets.replace(/\\([0-9]{1,3}|[^0-9])?/gs, (_escape, escaped: string = '') => {
    if (/^[^0-9]/.test(escaped)) return escaped
    if (escaped.length < 3 || Number(escaped) > 255) isMalformed = true
    return String.fromCharCode(Number(escaped))
  })
  return isMalformed ? undefined : Buffer.from(decoded, 'latin1')
}

/** A text as quoted strings of at most 255 octets each (RFC 1035, 3.3). Pure ASCII: other octets are `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text).toString('latin1')
  const strings = octets.match(/.{1,255}/gs) ?? ['']
  return strings.map((each) => `"${each.replace(/["\\]|[^\x20-\x7e]/g, escapeOctet)}"`).join(' ')
}

const escapeOctet = (octet: string) =>
  octet === '"' || octet === '\\'
    ? `\\${octet}`
    : `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`
