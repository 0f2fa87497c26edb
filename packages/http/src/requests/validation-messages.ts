import type { z } from 'zod'

/**
 * Words zod's issues as the contract words them: what the value must be. A message given in the schema takes
 * precedence. Pass as `error` to `safeParse`, with `reportInput: true`.
 */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  if (isMissing(issue)) return 'is missing'
  switch (issue.code) {
    case 'invalid_type':
      return types[issue.expected] ?? 'has the wrong type'
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`
    case 'too_small':
      return issue.origin === 'string' && issue.minimum === 1
        ? 'must not be empty'
        : `must ${verbs[issue.origin] ?? 'be'} at least ${count(issue.minimum, issue.origin)}`
    case 'too_big':
      return `must ${verbs[issue.origin] ?? 'be'} at most ${count(issue.maximum, issue.origin)}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
      return formats[issue.format] ?? 'has an invalid format'
    case 'unrecognized_keys':
      return `has unknown fields: ${issue.keys.join(', ')}`
    default:
      return 'is not valid'
  }
}

/**
 * Whether the issue is about a value that was not sent: JSON and queries cannot hold `undefined`. Unknown, and so false,
 * where the parse did not report inputs.
 */
export const isMissing = (issue: { code?: string | undefined; input?: unknown }) =>
  'input' in issue &&
  issue.input === undefined &&
  ['invalid_type', 'invalid_value', 'invalid_union'].includes(issue.code ?? '')

const types: Record<string, string> = {
  string: 'must be a string',
  number: 'must be a number',
  int: 'must be a whole number',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
  record: 'must be an object',
  null: 'must be null',
}

const verbs: Record<string, string> = { string: 'have', array: 'have', set: 'have' }

const units: Record<string, string> = { string: 'character', array: 'item', set: 'item' }

// "1 item", "2 items", and of a number just the number.
function count(limit: number | bigint, origin: string) {
  const unit = units[origin]
  return unit ? `${limit} ${unit}${Number(limit) === 1 ? '' : 's'}` : `${limit}`
}

const formats: Record<string, string> = {
  url: 'must be a URL',
  email: 'must be an e-mail address',
  datetime: 'must be an RFC 3339 instant such as 2026-11-20T19:20:00Z',
  date: 'must be a date such as 2026-11-20',
  ipv4: 'must be an IPv4 address',
  ipv6: 'must be an IPv6 address',
  cidrv4: 'must be an IPv4 network such as 192.0.2.0/24',
  cidrv6: 'must be an IPv6 network such as 2001:db8::/32',
}
