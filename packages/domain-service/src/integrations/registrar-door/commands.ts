import { allowsDomain, type Caller } from '@domains-and-files/auth'
import {
  type Element,
  element,
  errors,
  type Params,
  readListQuery,
  results,
} from '@domains-and-files/registrar-sandbox/protocol'
import { readDomain } from '../../dns/domain-name.ts'
import type { DomainList } from '../../domain-list/domain-list.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import { ResponseCache } from '../../registrar/response-cache.ts'
import type {
  DomainEntry,
  DomainInfo,
  Nameservers,
  Element as RegistrarElement,
} from '../../registrar/responses.ts'
import { isTransient } from '../../zones/zone-writer.ts'
import { type DoorContext, getHosts, type HostSources, setHosts, unless, zoneOf } from './hosts.ts'

export interface DoorSources extends HostSources {
  domains: DomainList
  registrar: RegistrarClient
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
}

interface Command {
  /** As the registrar spells it. */
  name: string
  run: (params: Params, context: DoorContext) => Promise<Element[]>
}

/** The commands by their names in lower case. @throws {ErrorResponse | HttpError} each. */
export function commandsOf(sources: DoorSources): ReadonlyMap<string, Command> {
  const runs: [string, Command['run']][] = [
    ['domains.getList', (params, { caller }) => listDomains(params, caller, sources.domains)],
    ['domains.getInfo', (params, { caller }) => getInfo(params, caller, sources)],
    ['domains.getTldList', tldReader(sources.registrar)],
    ['domains.dns.getList', (params, { caller }) => getNameservers(params, caller, sources)],
    ['domains.dns.getHosts', (params, context) => getHosts(params, context, sources)],
    ['domains.dns.setHosts', (params, context) => setHosts(params, context, sources)],
  ]
  const commands = runs.map(([name, run]) => ({ name: `namecheap.${name}`, run }))
  return new Map(commands.map((command) => [command.name.toLowerCase(), command]))
}

const cached = { fresh: false, mayBeStale: isTransient }

async function listDomains(params: Params, caller: Caller, domains: DomainList) {
  const query = readListQuery(params)
  const isVisible = caller.domains ? (name: string) => allowsDomain(caller, name) : undefined
  const found = await domains.select(query, { isVisible, wantsFresh: false })
  const { page, pageSize: size } = query
  const describe = (entry: DomainEntry) => describeEntry(entry, caller)
  return results.listResult(found.domains.map(describe), { total: found.total, page, size })
}

const describeEntry = (entry: DomainEntry, { username }: Caller) => ({
  ID: entry.id,
  Name: entry.name,
  User: username,
  Created: dayOf(entry.created_on),
  Expires: dayOf(entry.expires_on),
  IsExpired: entry.is_expired ?? undefined,
  IsLocked: entry.is_locked ?? undefined,
  AutoRenew: entry.auto_renew ?? undefined,
  WhoisGuard: entry.whois_guard ?? undefined,
  IsPremium: entry.is_premium ?? undefined,
  IsOurDNS: entry.uses_registrar_dns ?? undefined,
})

const dayOf = (day: string | null) => (day === null ? undefined : results.writeDay(day))

async function getInfo(params: Params, caller: Caller, { infos, registrar }: DoorSources) {
  const domain = readDomain(params.require('DomainName', errors.domainMissing))
  if (typeof domain === 'string' || !allowsDomain(caller, domain.name)) throw results.unknownInfo()
  const { value } = await infos
    .read(domain.name, () => registrar.info(domain), cached)
    .catch(unless('domain_not_found', results.unknownInfo))
  // No token sees the owner's mailbox; a token that is limited to some records does not see the number of all.
  return [
    toElement(value.element, caller.records ? ['EmailDetails', 'HostCount'] : ['EmailDetails']),
  ]
}

const tldCacheMs = 86_400_000

function tldReader(registrar: RegistrarClient): Command['run'] {
  const cache = new ResponseCache<Element[]>({
    ...registrar.cacheOptions(tldCacheMs),
    maxStaleMs: 30 * tldCacheMs,
  })
  const load = async () => [
    element(
      'Tlds',
      {},
      (await registrar.tlds()).map((each) => toElement(each)),
    ),
  ]
  return async () => (await cache.read('', load, cached)).value
}

/** An element of the registrar without the attributes and children of these names. */
function toElement(
  { name, attributes, children, text }: RegistrarElement,
  hidden: string[] = [],
): Element {
  const shown = Object.entries(attributes).filter(([key]) => !hidden.includes(key))
  const content = children.filter((child) => !hidden.includes(child.name))
  const inner = content.length > 0 ? content.map((child) => toElement(child, hidden)) : text
  return element(name, Object.fromEntries(shown), inner)
}

async function getNameservers(params: Params, caller: Caller, sources: DoorSources) {
  const { nameservers: cache, registrar } = sources
  const unknown = results.unknownZone.getList
  const domain = zoneOf(params, caller, unknown)
  const { value } = await cache
    .read(domain.name, () => registrar.nameservers(domain), cached)
    .catch(unless('domain_not_found', () => unknown(domain.name)))
  const attributes = {
    Domain: domain.name,
    IsUsingOurDNS: value.uses_registrar_dns ?? undefined,
    IsPremiumDNS: false,
  }
  const names = value.nameservers.map(({ name }) => name)
  return results.nameserversResult(attributes, names)
}
