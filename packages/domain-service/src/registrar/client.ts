import type { Priority, Reservation, ReserveOptions, WindowState } from '../budget/call-quota.ts'
import type { Domain } from '../dns/domain-name.ts'
import type { emailTypes } from '../dns/email-type.ts'
import type { Zone } from '../dns/record.ts'
import { emailTypeConflict } from '../errors.ts'
import { type CallerOptions, type CallSlot, isNotFound, RegistrarCaller } from './caller.ts'
import type { CacheOptions } from './response-cache.ts'
import {
  type DomainEntry,
  type DomainInfo,
  type Nameservers,
  readDomainInfo,
  readDomainList,
  readEmailType,
  readNameserverList,
  readZone,
  requireSuccess,
} from './responses.ts'

export type { CallSlot }

export interface ListQuery {
  listType: string
  searchTerm: string | undefined
  page: number
  pageSize: number
  sortBy: string
}

/** The registrar, one method per command. Reads are repeated where that may help; a write is sent once. */
export class RegistrarClient {
  readonly #options: CallerOptions
  readonly #caller: RegistrarCaller

  constructor(options: CallerOptions) {
    this.#options = options
    this.#caller = new RegistrarCaller(options)
  }

  /** One page of the account's domains, and the number of all that match. */
  listDomains(
    query: ListQuery,
    slot: CallSlot = 'read',
  ): Promise<{ domains: DomainEntry[]; total: number }> {
    return this.#caller.read({
      name: 'namecheap.domains.getList',
      params: {
        ListType: query.listType,
        ...(query.searchTerm === undefined ? {} : { SearchTerm: query.searchTerm }),
        Page: String(query.page),
        PageSize: String(query.pageSize),
        SortBy: query.sortBy,
      },
      result: 'DomainGetListResult',
      domain: '',
      read: readDomainList,
      slot,
    })
  }

  info(domain: Domain, slot: CallSlot = 'read'): Promise<DomainInfo> {
    return this.#caller.read({
      name: 'namecheap.domains.getInfo',
      params: { DomainName: domain.name },
      result: 'DomainGetInfoResult',
      domain: domain.name,
      read: (_response, result) => readDomainInfo(result, domain.name),
      slot,
    })
  }

  /** The email type as getInfo names it, for a zone whose getHosts does not; undefined where neither does. */
  async emailType(
    domain: Domain,
    slot: CallSlot,
  ): Promise<(typeof emailTypes)[number] | undefined> {
    return readEmailType(await this.info(domain, slot))
  }

  /** Falls back to getInfo for a FreeDNS domain, which the command for nameservers does not know. */
  async nameservers(domain: Domain): Promise<Nameservers> {
    try {
      return await this.#caller.read({
        name: 'namecheap.domains.dns.getList',
        params: { SLD: domain.sld, TLD: domain.tld },
        result: 'DomainDNSGetListResult',
        domain: domain.name,
        read: (_response, result) => readNameserverList(result, domain.name),
        slot: 'read',
      })
    } catch (error) {
      if (!isNotFound(error)) throw error
      const { dns } = await this.info(domain)
      const nameservers = dns.nameservers.map((name) => ({ name }))
      return { uses_registrar_dns: dns.uses_registrar_dns, nameservers }
    }
  }

  /**
   * Holds the slots of a write round: read, write, read-back. Pass it to `zone` and `replaceZone`, and release it in the
   * end. Calls beyond the reserved ones go before everything else.
   * @throws 503 `registrar_busy` where the slots do not come free in time; nothing is sent then.
   */
  reserve(calls: number, options?: ReserveOptions): Promise<Reservation> {
    return this.#options.quota.reserve(calls, options)
  }

  /** The zone as it is now. */
  zone(domain: Domain, slot: CallSlot): Promise<Zone> {
    return this.#caller.read({
      name: 'namecheap.domains.dns.getHosts',
      params: { SLD: domain.sld, TLD: domain.tld },
      result: 'DomainDNSGetHostsResult',
      domain: domain.name,
      read: (_response, result) => readZone(result, domain.name),
      slot,
    })
  }

  /**
   * Replaces the whole zone; sent once.
   * @throws {CallFailed} whose kind tells whether it may have been done all the same.
   * @throws 409 `email_type_conflict` for a zone of unknown email type; nothing is sent.
   */
  async replaceZone(domain: Domain, zone: Zone, slot: CallSlot = 'write'): Promise<void> {
    return this.#caller.send({
      name: 'namecheap.domains.dns.setHosts',
      params: { SLD: domain.sld, TLD: domain.tld, ...hostParams(zone) },
      result: 'DomainDNSSetHostsResult',
      domain: domain.name,
      read: (_response, result) => requireSuccess(result, domain.name),
      slot,
    })
  }

  /** Calls made and left in each window of the registrar's limits. */
  windows(): WindowState[] {
    return this.#options.quota.state()
  }

  /** Whether every counted call is stored; false while the disk is full or failing. */
  get isCountStored(): boolean {
    return this.#options.quota.isStored
  }

  /** What is known of the registrar without calling it. */
  state() {
    const { account, breaker, quota } = this.#options
    return {
      clientIp: account.clientIp,
      breaker: breaker.state,
      windows: quota.state(),
      waiting: quota.waiting,
      ...this.#caller.outcomes,
    }
  }

  /** How old an answer a reader gets who wants a fresh one: 10 s while the readers' calls are scarce, otherwise 0. */
  get freshAgeMs(): number {
    return this.#options.quota.readsAreScarce ? 10_000 : 0
  }

  /** Options of a cache for answers of this registrar. */
  cacheOptions(ttlMs: number): CacheOptions {
    return { ttlMs, freshAgeMs: () => this.freshAgeMs, now: this.#options.clock.now }
  }

  /** How long so many calls take that are made one by one as slots come free; an upper estimate. */
  waitMs(priority: Priority, calls: number): number {
    return this.#options.quota.waitMs(priority, calls)
  }

  /** Refuses calls that wait for a slot; resolves when calls under way are answered. */
  close(): Promise<void> {
    return this.#caller.close()
  }
}

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
