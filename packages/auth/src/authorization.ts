import { domainToASCII } from 'node:url'
import type { Access } from '@domains-and-files/http'
import { z } from 'zod'

export const Role = z.enum(['viewer', 'editor', 'admin'])
export type Role = z.infer<typeof Role>

/** An authenticated caller, with the rights that the users file grants now. */
export interface Caller {
  username: string
  role: Role
  /** Exact names and `*.` patterns. Absent: all domains. */
  domains?: string[]
  expiresAt: Date
}

/** A role includes the rights of the roles below it. */
export const isRoleEnough = (role: Role, needed: Role) => ranks[role] >= ranks[needed]

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
  return domains.some((pattern) => matchesPattern(name, pattern))
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

const matchesPattern = (name: string, pattern: string) =>
  pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern
