import { HttpError } from '@domains-and-files/http'
import type { ListQuery } from '@domains-and-files/registrar-sandbox/protocol'
import { LRUCache } from 'lru-cache'
import type { CallQuota, CallSlot } from '../budget/call-quota.ts'
import type { Domain } from '../dns/domain-name.ts'
import { emailTypes, type Zone } from '../dns/zone.ts'
import { emailTypeUnknown } from '../errors.ts'
import { type CallerOptions, isNotFound, RegistrarCaller } from './caller.ts'
import {
  type DomainInfo,
  type Element,
  type Nameservers,
  readDomainInfo,
  readDomainList,
  readNameserverList,
  readZone,
  requireSuccess,
} from './responses.ts'

/** The registrar, one method per command. Reads are repeated where that may help; a write is sent once. */
export class RegistrarClient {
  readonly #options: CallerOptions
  readonly #caller: RegistrarCaller
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
        ...(query.searchTerm !== undefined && { SearchTerm: query.searchTerm }),
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

  info(domain: Domain, slot: CallSlot): Promise<DomainInfo> {
    return this.#caller.read({
      ...command('domains.getInfo', 'DomainGetInfoResult', domain),
      params: { DomainName: domain.name },
      read: readDomainInfo,
      slot,
    })
  }

  /** The email type as getInfo names it, for a zone whose getHosts does not; undefined where neither does. */
  async emailType(domain: Domain, slot: CallSlot) {
    const { dns } = await this.info(domain, slot)
    return emailTypes.find((type) => type === dns.email_type)
  }

  /** Falls back to getInfo for a FreeDNS domain, which the command for nameservers does not know. */
  async nameservers(domain: Domain, slot: CallSlot): Promise<Nameservers> {
    try {
      return await this.#caller.read({
        ...command('domains.dns.getList', 'DomainDNSGetListResult', domain),
        read: readNameserverList,
        slot,
      })
    } catch (error) {
      if (!isNotFound(error)) throw error
      const { dns } = await this.info(domain, slot)
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
   * Replaces the whole zone; sent once.
   * @throws {CallFailed} whose kind tells whether the registrar may have replaced the zone all the same; 409
   * `email_type_conflict` for a zone of unknown email type.
   */
  async replaceZone(domain: Domain, zone: Zone, slot: CallSlot, onSend: () => void): Promise<void> {
    const setHosts = command('domains.dns.setHosts', 'DomainDNSSetHostsResult', domain)
    const params = { ...setHosts.params, ...hostParams(zone) }
    return this.#caller.send({ ...setHosts, params, read: requireSuccess, slot, onSend })
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

  cacheOptions(ttlMs: number): CacheOptions {
    return { ttlMs, freshAgeMs: () => this.freshAgeMs, now: this.#options.clock.now }
  }

  /** Refuses calls that wait for a slot; resolves when calls under way are answered. */
  close(): Promise<void> {
    return this.#caller.close()
  }
}

/** A command about a domain, or else about the account; `result`: the name of its result. */
const command = (name: string, result: string, domain?: Domain) => ({
  command: `namecheap.${name}`,
  params: domain ? { SLD: domain.sld, TLD: domain.tld } : {},
  result,
  domain: domain?.name ?? '',
  slot: 'read' as const,
})

// All rows, and always the email type: the registrar deletes what a write does not name.
function hostParams({ emailType, rows }: Zone): Record<string, string> {
  if (emailType === undefined) throw emailTypeUnknown()
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

export interface Cached<Value> {
  value: Value
  /** Milliseconds since it was read. */
  age: number
  /** Expired; served because the reload failed. */
  stale: boolean
}

export interface CacheOptions {
  ttlMs: number
  /** Maximum age of a value that counts as fresh; 0 unless calls are scarce. */
  freshAgeMs: () => number
  now: () => number
  /** The version, which each write of any process raises: an answer of another version is outdated. */
  versionOf?: ((key: string) => Promise<number>) | undefined
}

const maxStaleMs = 300_000

/**
 * Answers of the registrar by key; concurrent loads of a key are one load. A load that began before `put`
 * or `drop` neither overwrites what they did nor is joined after them.
 */
export class ResponseCache<Value> {
  readonly #options: CacheOptions
  readonly #entries = new LRUCache<string, { value: Value; at: number; version: number }>({ max: 2_000 })
  readonly #loads = new Map<string, { loaded: Promise<Value>; version: number }>()
  readonly counts = { hit: 0, miss: 0, stale: 0 }

  constructor(options: CacheOptions) {
    this.#options = options
  }

  /**
   * The cached value up to `ttlMs` old, or up to `freshAgeMs` if `fresh`; otherwise a loaded one. If loading fails for a
   * reason that may pass, an expired value up to five minutes old, but never if `fresh`.
   */
  async read(key: string, load: () => Promise<Value>, fresh = false): Promise<Cached<Value>> {
    const { ttlMs, freshAgeMs, now, versionOf } = this.#options
    const version = versionOf ? await versionOf(key) : 0
    const known = this.#entries.get(key)
    const entry = known?.version === version ? known : undefined
    const age = entry ? Math.max(0, now() - entry.at) : Infinity
    if (entry && ((!fresh && age < ttlMs) || age < freshAgeMs())) {
      this.counts.hit++
      return { value: entry.value, age, stale: false }
    }
    this.counts.miss++
    try {
      return { value: await this.#load(key, version, load), age: 0, stale: false }
    } catch (error) {
      // Such a failure may pass by itself: an older value serves better than none.
      const isTransient = error instanceof HttpError && error.status >= 500 && error.code.startsWith('registrar_')
      if (!entry || age > maxStaleMs || fresh || !isTransient) throw error
      this.counts.stale++
      return { value: entry.value, age, stale: true }
    }
  }

  /** `version`: what `versionOf` gave when the value was current. */
  put(key: string, value: Value, version = 0) {
    this.drop(key)
    this.#entries.set(key, { value, at: this.#options.now(), version })
  }

  drop(key: string) {
    this.#loads.delete(key)
    this.#entries.delete(key)
  }

  async #load(key: string, version: number, load: () => Promise<Value>): Promise<Value> {
    const running = this.#loads.get(key)
    if (running?.version === version) return running.loaded
    const loading = { loaded: load(), version }
    const isLatest = () => this.#loads.get(key) === loading
    this.#loads.set(key, loading)
    try {
      const value = await loading.loaded
      if (isLatest()) this.put(key, value, version)
      return value
    } finally {
      if (isLatest()) this.#loads.delete(key)
    }
  }
}
