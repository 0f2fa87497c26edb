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
import { domainNotFound } from '../../errors.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import { ResponseCache } from '../../registrar/response-cache.ts'
import type {
  DomainEntry,
  DomainInfo,
  Nameservers,
  Element as RegistrarElement,
} from '../../registrar/responses.ts'
import { isTransient } from '../../zones/zone-writer.ts'
import { getHosts, type HostContext, setHosts, zoneOf } from './hosts.ts'

/** A caller, and what the commands need. */
export interface DoorContext extends HostContext {
  domains: DomainList
  registrar: RegistrarClient
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
}

interface Command {
  /** @throws {ErrorResponse | HttpError} */
  run: (params: Params, context: DoorContext) => Promise<Element[]>
  /** The refusal for a domain that is not in the account, or hidden from the caller. */
  unknown?: (domain: string) => Error
}

/** The commands by their names in lower case, each with its `name` as the registrar spells it. */
export function commandsOf(registrar: RegistrarClient) {
  const commands: Record<string, Command> = {
    'domains.getList': { run: listDomains },
    'domains.getInfo': { run: getInfo, unknown: results.unknownInfo },
    'domains.getTldList': { run: tldReader(registrar) },
    'domains.dns.getList': { run: getNameservers, unknown: results.unknownZone.getList },
    'domains.dns.getHosts': { run: getHosts, unknown: results.unknownZone.getHosts },
    'domains.dns.setHosts': { run: setHosts, unknown: results.unknownZone.setHosts },
  }
  const named = Object.entries(commands).map(([key, command]) => {
    const name = `namecheap.${key}`
    return [name.toLowerCase(), { ...command, name }] as const
  })
  return new Map(named)
}

const cached = { fresh: false, mayBeStale: isTransient }

async function listDomains(params: Params, { caller, domains }: DoorContext) {
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

async function getInfo(params: Params, { caller, infos, registrar }: DoorContext) {
  const name = params.require('DomainName', errors.domainMissing)
  const domain = readDomain(name)
  if (typeof domain === 'string' || !allowsDomain(caller, domain.name)) throw domainNotFound(name)
  const { value } = await infos.read(domain.name, () => registrar.info(domain), cached)
  // No token sees the owner's mailbox; a token that is limited to some records does not see the number of all.
  const hidden = caller.records ? ['EmailDetails', 'HostCount'] : ['EmailDetails']
  return [toElement(value.element, hidden)]
}

const tldCacheMs = 86_400_000

function tldReader(registrar: RegistrarClient): Command['run'] {
  const options = { ...registrar.cacheOptions(tldCacheMs), maxStaleMs: 30 * tldCacheMs }
  const cache = new ResponseCache<RegistrarElement>(options)
  return async () => [toElement((await cache.read('', () => registrar.tlds(), cached)).value)]
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

async function getNameservers(params: Params, { caller, nameservers, registrar }: DoorContext) {
  const domain = zoneOf(params, caller)
  const load = () => registrar.nameservers(domain)
  const { value } = await nameservers.read(domain.name, load, cached)
  const IsUsingOurDNS = value.uses_registrar_dns ?? undefined
  const attributes = { Domain: domain.name, IsUsingOurDNS, IsPremiumDNS: false }
  const names = value.nameservers.map(({ name }) => name)
  return results.nameserversResult(attributes, names)
}
