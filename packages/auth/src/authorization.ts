import { domainToASCII } from 'node:url'
import { z } from 'zod'

export const Role = z.enum(['viewer', 'editor', 'admin'])
export type Role = z.infer<typeof Role>

/** What a route asks of its caller. */
export type Access = 'public' | Role

/** Who is calling, as the users file says now. */
export interface Caller {
  username: string
  role: Role
  /** The domains that this caller is limited to; absent: all. */
  domains?: string[]
  expiresAt: Date
}

/** Every role may also do what the roles below it may. */
export const isRoleEnough = (role: Role, needed: Role) => ranks[role] >= ranks[needed]

export const isAccess = (value: unknown): value is Access =>
  value === 'public' || Role.safeParse(value).success

/**
 * Says whether a caller may see this domain: named in their list exactly, or below one of its `*.` patterns; without
 * a list, all. Case and Unicode spelling of the domain do not matter; the list is canonical, as the users file gives it.
 */
export function allowsDomain({ domains }: { domains?: string[] }, domain: string): boolean {
  if (!domains) return true
  const name = canonizeDomain(domain)
  if (!name || name.startsWith('*')) return false
  return domains.some((pattern) => matchesPattern(name, pattern))
}

/** The lower-case A-labels of a domain or of a `*.` pattern; nothing if it is neither. */
export function canonizeDomain(text: string): string | undefined {
  if (text.length > longestPattern) return undefined
  const [, star = '', name = ''] = domainPattern.exec(text) ?? []
  const canonical = domainToASCII(name)
  return canonical ? star + canonical : undefined
}

const ranks: Record<Role, number> = { viewer: 1, editor: 2, admin: 3 }

// `*.` and the longest name (RFC 1035, 2.3.4).
const longestPattern = 255

// Checked before domainToASCII, which reads a URL's host and would drop a path or turn `1.2` into an address.
const domainPattern =
  /^(\*\.)?((?:[\p{L}\p{M}\p{N}_-]+\.)+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u

const matchesPattern = (name: string, pattern: string) =>
  pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern
