import { allowsDomain, type Caller } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import { type Domain, toAscii } from '../dns/domain-name.ts'
import type { DomainList } from '../domain-list/domain-list.ts'

/** A host name of a client's protocol, as the record name in a domain of the account. */
export interface HostName {
  domain: Domain
  /** Relative to the domain; `@` for the domain itself. */
  name: string
}

interface Scope {
  domains: DomainList
  caller: Caller
}

/** The longest domain of the account that a host name ends in, among those that the caller may see. */
export async function locateHostName(fqdn: string, { domains, caller }: Scope): Promise<HostName | undefined> {
  const name = canonicalHostName(fqdn)
  if (name === undefined) return undefined
  const domain = await domains.findZoneOf(name, (each) => allowsDomain(caller, each))
  if (!domain) return undefined
  return { domain, name: name === domain.name ? '@' : name.slice(0, -domain.name.length - 1) }
}

/** @throws {HttpError} 404 `domain_not_found` */
export async function expectHostName(fqdn: string, scope: Scope): Promise<HostName> {
  const host = await locateHostName(fqdn, scope)
  if (host) return host
  throw new HttpError(404, 'domain_not_found', `No domain of this account has ${fqdn}`)
}

/** A host name in lower case and A-labels, without its trailing dot; undefined where it is none. */
export function canonicalHostName(text: string): string | undefined {
  const name = toAscii(text.replace(/\.$/, ''))
  if (name === undefined || name.length > 253 || !name.includes('.')) return undefined
  return /^(?:\*\.)?[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(name) ? name : undefined
}
