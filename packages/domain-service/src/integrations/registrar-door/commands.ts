import { allowsDomain } from '@domains-and-files/auth'
import {
  type Element,
  element,
  errors,
  type Params,
  readListQuery,
  results,
} from '@domains-and-files/registrar-sandbox/protocol'
import { readDomain } from '../../dns/domain-name.ts'
import { domainNotFound } from '../../errors.ts'
import { type RegistrarClient, ResponseCache } from '../../registrar/client.ts'
import type { Element as RegistrarElement } from '../../registrar/responses.ts'
import { type DoorContext, readHosts, writeHosts, zoneOf } from './hosts.ts'

interface Command {
  /** As the registrar spells it. */
  name: string
  /** @throws {ErrorResponse | HttpError} */
  run: (params: Params, context: DoorContext) => Promise<Element[]>
  /** The refusal for a domain that is not in the account, or hidden from the caller. */
  unknown?: (domain: string) => Error
}

/** The commands by their names in lower case. */
export function commandsOf(registrar: RegistrarClient) {
  const { getList, getHosts, setHosts } = results.unknownZone
  const commands: Command[] = [
    { name: 'namecheap.domains.getList', run: listDomains },
    { name: 'namecheap.domains.getInfo', run: getInfo, unknown: results.unknownInfo },
    { name: 'namecheap.domains.getTldList', run: tldReader(registrar) },
    { name: 'namecheap.domains.dns.getList', run: getNameservers, unknown: getList },
    { name: 'namecheap.domains.dns.getHosts', run: readHosts, unknown: getHosts },
    { name: 'namecheap.domains.dns.setHosts', run: writeHosts, unknown: setHosts },
  ]
  return new Map(commands.map((command) => [command.name.toLowerCase(), command]))
}

async function listDomains(params: Params, { caller, domains }: DoorContext) {
  const query = readListQuery(params)
  const isVisible = caller.domains ? (name: string) => allowsDomain(caller, name) : undefined
  const found = await domains.select(query, { isVisible, wantsFresh: false })
  const { page, pageSize: size } = query
  const listed = found.domains.map((entry) => ({ ...entry, user: caller.username }))
  return results.listResult(listed, { total: found.total, page, size })
}

async function getInfo(params: Params, { caller, infos, registrar }: DoorContext) {
  const name = params.require('DomainName', errors.domainMissing)
  const domain = readDomain(name)
  if (typeof domain === 'string' || !allowsDomain(caller, domain.name)) throw domainNotFound(name)
  const { value } = await infos.read(domain.name, () => registrar.info(domain))
  // No token sees the owner's mailbox; a token that is limited to some records does not see the number of all.
  const hidden = caller.records ? ['EmailDetails', 'HostCount'] : ['EmailDetails']
  return [toElement(value.element, hidden)]
}

const tldCacheMs = 86_400_000

function tldReader(registrar: RegistrarClient): Command['run'] {
  const options = { ...registrar.cacheOptions(tldCacheMs), maxStaleMs: 30 * tldCacheMs }
  const cache = new ResponseCache<RegistrarElement>(options)
  return async () => [toElement((await cache.read('', () => registrar.tlds())).value)]
}

/** An element of the registrar without the attributes and children of these names. */
function toElement({ name, attributes, children, text }: RegistrarElement, hidden: string[] = []): Element {
  const shown = Object.entries(attributes).filter(([key]) => !hidden.includes(key))
  const content = children.filter((child) => !hidden.includes(child.name))
  const inner = content.length > 0 ? content.map((child) => toElement(child, hidden)) : text
  return element(name, Object.fromEntries(shown), inner)
}

async function getNameservers(params: Params, { caller, nameservers, registrar }: DoorContext) {
  const domain = zoneOf(params, caller)
  const load = () => registrar.nameservers(domain)
  const { value } = await nameservers.read(domain.name, load)
  const { uses_registrar_dns: IsUsingOurDNS } = value
  const attributes = { Domain: domain.name, IsUsingOurDNS, IsPremiumDNS: false }
  const names = value.nameservers.map(({ name }) => name)
  return results.nameserversResult(attributes, names)
}
