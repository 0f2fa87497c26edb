import { allowsDomain, type Caller } from '@domains-and-files/auth'
import { type Domain, toAscii } from '../dns/domain-name.ts'
import type { DomainList } from '../domain-list/domain-list.ts'

/** A host name of a client's protocol, as the record name in a domain of the account. */
export interface HostName {
  domain: Domain
  /** Relative to the domain; `@` for the domain itself. */
  name: string
}

export type DomainFinder = Pick<DomainList, 'findZoneOf'>

/** The domain of the account that a host name belongs to, among those that the caller may see. */
export async function locateHostName(
  fqdn: string,
  { domains, caller }: { domains: DomainFinder; caller: Caller },
): Promise<HostName | undefined> {
  const name = canonicalHostName(fqdn)
  if (name === undefined) return undefined
  const domain = await domains.findZoneOf(name, (each) => allowsDomain(caller, each))
  if (!domain) return undefined
  return { domain, name: name === domain.name ? '@' : name.slice(0, -domain.name.length - 1) }
}

/** A host name in lower case and A-labels, without its trailing dot; undefined where it is none. */
export function canonicalHostName(text: string): string | undefined {
  const name = toAscii(text.replace(/\.$/, ''))
  if (name === undefined || name.length > 253 || !name.includes('.')) return undefined
  const isName = name
    .split('.')
    .every((label, index) => /^[a-z0-9_-]{1,63}$/.test(label) || (label === '*' && index === 0))
  return isName ? name : undefined
}
