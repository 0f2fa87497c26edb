import { z } from 'zod'

export const emailTypes = ['NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL'] as const
export const rights = ['dns', 'hosts', 'ddns', 'nameserver', 'premiumDns', 'dnsSec'] as const
export const ownServers = ['dns1.registrar-servers.com', 'dns2.registrar-servers.com']
const freeServers = [1, 2, 3, 4, 5].map((number) => `freedns${number}.registrar-servers.com`)

const Day = z.iso.date()

/** The day of a time in milliseconds since 1970. */
export const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

/** One row of a zone. */
export const Host = z.object({
  hostId: z.int().positive(),
  name: z.string(),
  type: z.string(),
  address: z.string(),
  mxPref: z.int().default(10),
  ttl: z.int().default(1800),
  isDdns: z.boolean().default(false),
})

/** A domain of the account. `dns` says whose name servers it uses. Files of earlier versions have further fields. */
export const Domain = z.object({
  id: z.int().positive(),
  name: z.string().toLowerCase(),
  owner: z.string(),
  isOwner: z.boolean().default(true),
  rights: z.union([z.literal('all'), z.array(z.enum(rights))]).default('all'),
  created: Day,
  expires: Day,
  isLocked: z.boolean().default(false),
  autoRenew: z.boolean().default(false),
  whoisGuard: z.enum(['ENABLED', 'DISABLED', 'NOTPRESENT']).default('ENABLED'),
  isPremium: z.boolean().default(false),
  dns: z.enum(['basic', 'premium', 'free', 'custom']).default('basic'),
  nameservers: z.array(z.string()).default([]),
  // The answer of getHosts while the name servers are elsewhere: error 2030288, or the old rows.
  whenElsewhere: z.enum(['error', 'stale']).default('error'),
  emailType: z.enum(emailTypes).default('NONE'),
  hosts: z.array(Host).default([]),
})

/** A row as entered in the panel, unchecked. */
export const HostSketch = Host.partial({ hostId: true }).strict()

/** A domain to add; the account sets absent fields. */
export const DomainSketch = Domain.extend({
  hosts: z.array(HostSketch).default([]),
}).partial({ id: true, owner: true, created: true, expires: true })

export type Host = z.output<typeof Host>
export type Domain = z.output<typeof Domain>
export type HostSketch = z.input<typeof HostSketch>
export type DomainSketch = z.input<typeof DomainSketch>
export type EmailType = (typeof emailTypes)[number]

/** Whether the registrar's DNS serves this domain: whether the hosts stored here are public. */
export function usesOurDns(domain: Domain): boolean {
  return domain.dns !== 'custom'
}

export function serversOf(domain: Domain): string[] {
  if (domain.dns === 'custom') return domain.nameservers
  return domain.dns === 'free' ? freeServers : ownServers
}
