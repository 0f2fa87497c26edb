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

function toOctets(token: string): Buffer | undefined {
  if (!token.includes('\\')) return Buffer.from(token)
  const parts = token.match(/\\[0-9]{3}|\\[^0-9]|[^\\]+/gs) ?? []
  if (parts.join('') !== token) return undefined
  const octets = parts.map((part) => {
    if (!part.startsWith('\\')) return Buffer.from(part)
    return part.length < 4 ? Buffer.from(part.slice(1)) : Buffer.from([Number(part.slice(1))])
  })
  return parts.some((part) => /^\\[0-9]/.test(part) && Number(part.slice(1)) > 255)
    ? undefined
    : Buffer.concat(octets)
}

/** A text as quoted strings of at most 255 octets each (RFC 1035, 3.3). Pure ASCII: other octets are `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text)
  const strings: string[] = []
  for (let start = 0; start < octets.length || start === 0; start += 255) {
    const part = [...octets.subarray(start, start + 255)].map(escapeOctet).join('')
    strings.push(`"${part}"`)
  }
  return strings.join(' ')
}

function escapeOctet(octet: number): string {
  if (octet === 0x22 || octet === 0x5c) return `\\${String.fromCharCode(octet)}`
  if (octet >= 0x20 && octet < 0x7f) return String.fromCharCode(octet)
  return `\\${String(octet).padStart(3, '0')}`
}
