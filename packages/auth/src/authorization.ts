import { domainToASCII } from 'node:url'
import type { Access } from '@domains-and-files/http'
import { z } from 'zod'
import type { RecordLimit } from './api-tokens/record-limits.ts'

export const Role = z.enum(['viewer', 'editor', 'admin'])
export type Role = z.infer<typeof Role>

/** An authenticated caller, with the rights that the users file and the API token grant now. */
export interface Caller {
  username: string
  role: Role
  /** Exact names and `*.` patterns. Absent: all domains. */
  domains?: string[]
  /** Absent: never. */
  expiresAt?: Date
  /** Set if an API token was used. */
  token?: TokenCaller
}

export interface TokenCaller {
  id: string
  name: string
  /** If present, only these RRsets can be written. */
  records?: RecordLimit[]
  /** Whether RRsets outside `records` can be read. */
  readsAll: boolean
}

/** A role includes the rights of the roles below it. */
export const isRoleEnough = (role: Role, needed: Role) => ranks[role] >= ranks[needed]

export const lowerRole = (one: Role, other: Role) => (isRoleEnough(one, other) ? other : one)

export const isAccess = (value: unknown): value is Access =>
  value === 'public' || Role.safeParse(value).success

/**
 * Whether a caller may see this domain: listed exactly, or below a listed `*.` pattern; without a list, always. Case and
 * Unicode spelling of the domain do not matter; the list is canonical already.
 */
export function allowsDomain({ domains }: { domains?: string[] }, domain: string): boolean {
  if (!domains) return true
  const name = canonicalDomain(domain)
  if (!name || name.startsWith('*')) return false
  return domains.some((pattern) => covers(pattern, name))
}

/** The domains that two lists of names and `*.` patterns both allow; an absent list allows all. */
export function intersectDomains(one?: string[], other?: string[]): string[] | undefined {
  if (!one || !other) return one ?? other
  const common = [
    ...one.filter((domain) => other.some((pattern) => covers(pattern, domain))),
    ...other.filter((domain) => one.some((pattern) => covers(pattern, domain))),
  ]
  return [...new Set(common)]
}

/** The lower-case A-labels of a domain or of a `*.` pattern; undefined if it is neither. */
export function canonicalDomain(text: string): string | undefined {
  if (text.length > maxPatternLength) return undefined
  const [, star = '', name = ''] = domainPattern.exec(text) ?? []
  const canonical = domainToASCII(name)
  return canonical ? star + canonical : undefined
}

const ranks: Record<Role, number> = { viewer: 1, editor: 2, admin: 3 }

// `*.` and the longest name (RFC 1035, 2.3.4).
const maxPatternLength = 255

// Checked before domainToASCII, which parses a URL host: it would drop a path, and turn `1.2` into an address.
const domainPattern =
  /^(\*\.)?((?:[\p{L}\p{M}\p{N}_-]+\.)+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u

// Also of patterns: `*.uk` covers `*.co.uk`.
const covers = (pattern: string, name: string) =>
  pattern === name || (pattern.startsWith('*.') && name.endsWith(pattern.slice(1)))
