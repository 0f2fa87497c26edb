import type { ListQuery } from '@domains-and-files/registrar-sandbox/protocol'
import type { CallQuota } from '../budget/call-quota.ts'
import type { CallSlot } from '../budget/reservation.ts'
import type { Domain } from '../dns/domain-name.ts'
import type { Zone } from '../dns/zone.ts'
import { emailTypeConflict } from '../errors.ts'
import { type CallerOptions, isNotFound, RegistrarCaller } from './caller.ts'
import type { CacheOptions } from './response-cache.ts'
import {
  type DomainInfo,
  type Element,
  type Nameservers,
  readDomainInfo,
  readDomainList,
  readEmailType,
  readNameserverList,
  readZone,
  requireSuccess,
} from './responses.ts'

/** The registrar, one method per command. Reads are repeated where that may help; a write is sent once. */
export class RegistrarClient {
  readonly #options: CallerOptions
  readonly #caller: RegistrarCaller
  /** The calls that the registrar allows. */
  readonly quota: CallQuota

  constructor(options: CallerOptions) {
    this.#options = options
    this.#caller = new RegistrarCaller(options)
    this.quota = options.quota
  }

  /** One page of the account's domains, and the number of all that match. */
  listDomains(query: ListQuery, slot: CallSlot = 'read') {
    return this.#caller.read({
      ...command('domains.getList', 'DomainGetListResult'),
      params: {
        ListType: query.listType,
        ...(query.searchTerm === undefined ? {} : { SearchTerm: query.searchTerm }),
        Page: String(query.page),
        PageSize: String(query.pageSize),
        SortBy: query.sortBy,
      },
      read: readDomainList,
      slot,
    })
  }

  /** The suffixes that the registrar sells, as it describes them. */
  tlds(): Promise<Element> {
    return this.#caller.read({ ...command('domains.getTldList', 'Tlds'), read: (tlds) => tlds })
  }

  info(domain: Domain, slot: CallSlot = 'read'): Promise<DomainInfo> {
    return this.#caller.read({
      ...command('domains.getInfo', 'DomainGetInfoResult', domain),
      params: { DomainName: domain.name },
      read: readDomainInfo,
      slot,
    })
  }

  /** The email type as getInfo names it, for a zone whose getHosts does not; undefined where neither does. */
  async emailType(domain: Domain, slot: CallSlot) {
    return readEmailType(await this.info(domain, slot))
  }

  /** Falls back to getInfo for a FreeDNS domain, which the command for nameservers does not know. */
  async nameservers(domain: Domain): Promise<Nameservers> {
    try {
      return await this.#caller.read({
        ...command('domains.dns.getList', 'DomainDNSGetListResult', domain),
        read: readNameserverList,
      })
    } catch (error) {
      if (!isNotFound(error)) throw error
      const { dns } = await this.info(domain)
      const nameservers = dns.nameservers.map((name) => ({ name }))
      return { uses_registrar_dns: dns.uses_registrar_dns, nameservers }
    }
  }

  /** Called for each zone that was read, with the time when its request was sent. */
  onZone: (zone: Zone, readAt: number) => void = () => undefined

  /** The zone as it is now. `onRead` is called in place of `onZone`. */
  async zone(domain: Domain, slot: CallSlot, onRead = this.onZone): Promise<Zone> {
    const { clock } = this.#options
    let readAt = clock.now()
    const zone = await this.#caller.read({
      ...command('domains.dns.getHosts', 'DomainDNSGetHostsResult', domain),
      read: readZone,
      slot,
      onSend: () => {
        readAt = clock.now()
      },
    })
    onRead(zone, readAt)
    return zone
  }

  /**
   * Replaces the whole zone; sent once. `onSend` is called right before the first byte is sent: where it throws, nothing
   * is.
   * @throws {CallFailed} whose kind tells whether the registrar may have replaced the zone all the same.
   * @throws 409 `email_type_conflict` for a zone of unknown email type; nothing is sent.
   */
  async replaceZone(domain: Domain, zone: Zone, slot: CallSlot = 'write', onSend?: () => void): Promise<void> {
    const { params, ...setHosts } = command('domains.dns.setHosts', 'DomainDNSSetHostsResult', domain)
    return this.#caller.send({
      ...setHosts,
      params: { ...params, ...hostParams(zone) },
      read: requireSuccess,
      slot,
      onSend,
    })
  }

  /** The state of the registrar, as the API has it; makes no call. */
  state() {
    return {
      client_ip: this.#options.account.clientIp,
      breaker: this.#caller.breaker.state,
      calls_waiting: this.quota.waiting,
      ...this.#caller.outcomes,
    }
  }

  /** Maximum age of an answer that counts as fresh: 10 s while the readers' calls are scarce, otherwise 0. */
  get freshAgeMs(): number {
    return this.quota.windows.readsAreScarce(this.quota.now()) ? 10_000 : 0
  }

  /** Options of a cache for answers of this registrar. */
  cacheOptions(ttlMs: number): CacheOptions {
    return { ttlMs, freshAgeMs: () => this.freshAgeMs, now: this.#options.clock.now }
  }

  /** Refuses calls that wait for a slot; resolves when calls under way are answered. */
  close(): Promise<void> {
    return this.#caller.close()
  }
}

/** A command about a domain, or about the account, with the name of its result. */
const command = (name: string, result: string, domain?: Domain) => ({
  command: `namecheap.${name}`,
  params: domain ? { SLD: domain.sld, TLD: domain.tld } : {},
  result,
  domain: domain?.name ?? '',
  slot: 'read' as const,
})

// All rows, and always the email type: the registrar deletes what a write does not name.
function hostParams({ emailType, rows }: Zone): Record<string, string> {
  if (emailType === undefined)
    throw emailTypeConflict(
      'The registrar does not tell the email type of this zone: send "email_type", or e-mail forwarding could end',
    )
  const params: Record<string, string> = { EmailType: emailType }
  for (const [index, row] of rows.entries()) {
    const number = index + 1
    params[`HostName${number}`] = row.name
    params[`RecordType${number}`] = row.type
    params[`Address${number}`] = row.address
    if (row.mxPref !== '') params[`MXPref${number}`] = row.mxPref
    if (row.ttl !== '') params[`TTL${number}`] = row.ttl
  }
  return params
}
