/** A CAA value (RFC 8659, 4.1). */
export interface Caa {
  flags: number
  tag: string
  value: string
}

/** Reads `flags tag "value"`, with or without the quotes; undefined where it is none. */
export function caaParts(address: string): Caa | undefined {
  const [, flags, tag, quoted, bare] = pattern.exec(address) ?? []
  const value = quoted ?? bare
  if (flags === undefined || tag === undefined || value === undefined) return undefined
  return { flags: Number(flags), tag: tag.toLowerCase(), value }
}

const pattern = /^\s*([0-9]{1,3})\s+([a-zA-Z0-9]+)\s+(?:"([^"]*)"|([^"\s](?:[^"]*[^"\s])?))\s*$/

/**
 * Whether a value suits `issue` and `issuewild` (RFC 8659, 4.2): a host name or nothing, then parameters such as
 * `; accounturi=https://…`.
 */
export function isCaaIssueValue(value: string): boolean {
  const [issuer = '', ...parameters] = value.split(';').map((part) => part.trim())
  const isIssuer =
    issuer === '' ||
    issuer.split('.').every((label) => /^(?!-)[a-zA-Z0-9-]{1,63}(?<!-)$/.test(label))
  return (
    isIssuer &&
    parameters.every((parameter, index) =>
      // "ca.example.net;" has one empty parameter: common, and without meaning.
      parameter === '' ? index === parameters.length - 1 : isParameter(parameter),
    )
  )
}

function isParameter(text: string): boolean {
  const equals = text.indexOf('=')
  if (equals < 1) return false
  const tag = text.slice(0, equals).trimEnd()
  const value = text.slice(equals + 1).trimStart()
  return /^[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*$/.test(tag) && /^[\x21-\x3a\x3c-\x7e]*$/.test(value)
}
