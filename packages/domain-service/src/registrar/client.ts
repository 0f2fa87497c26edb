import { type Histogram, HttpError, type Logger } from '@domains-and-files/http'
import { type Clock, delay } from '../clock.ts'
import type { Domain } from '../dns/domain-name.ts'
import type { emailTypes } from '../dns/email-type.ts'
import type { Zone } from '../dns/record.ts'
import { domainNotFound, emailTypeConflict } from '../errors.ts'
import type { CallQuota, Priority, ReserveOptions, WindowState } from '../ledger/call-quota.ts'
import type { Reservation } from '../ledger/reservation.ts'
import { CallFailed } from './call-failed.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import { readEnvelope } from './envelope.ts'
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
import { type Account, RegistrarTransport } from './transport.ts'
import { UnknownDomains } from './unknown-domains.ts'
import type { Element } from './xml.ts'

export interface ListQuery {
  listType: string
  searchTerm: string | undefined
  page: number
  pageSize: number
  sortBy: string
}

/** Where a call gets its slot: the reservation of its round, or the queue of all calls. */
export type CallSlot = Priority | Pick<Reservation, 'use'>

interface ClientOptions {
  account: Account
  /** Per call. A read is repeated only while less than twice this has passed since its first try. */
  timeoutMs: number
  quota: CallQuota
  breaker: CircuitBreaker
  clock: Clock
  log: Logger
  /** Observes the seconds of each call. */
  calls?: Histogram<'command' | 'outcome'>
}

interface Command<Value> {
  name: string
  params: Record<string, string>
  result: string
  /** Empty for a command about the whole account. */
  domain: string
  /** Converts the answer; throws {CallFailed} where it cannot. */
  read: (response: Element, result: Element) => Value
  slot: CallSlot
}

const maxTries = 3

/** The registrar, one method per command. Reads are repeated where that may help; a write is sent once. */
export class RegistrarClient {
  readonly #options: ClientOptions
  readonly #transport: RegistrarTransport
  readonly #unknown: UnknownDomains
  #lastSuccess: Date | undefined
  #lastFailure: { at: Date; code: string } | undefined

  constructor(options: ClientOptions) {
    this.#options = options
    this.#transport = new RegistrarTransport(options.account, options.timeoutMs)
    this.#unknown = new UnknownDomains(options.clock)
  }

  /** One page of the account's domains, and the number of all that match. */
  listDomains(
    query: ListQuery,
    slot: CallSlot = 'read',
  ): Promise<{ domains: DomainEntry[]; total: number }> {
    return this.#read({
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
    return this.#read({
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
      return await this.#read({
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
    return this.#read({
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
    return this.#attempt({
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
    const { breaker, quota } = this.#options
    return {
      breaker: breaker.state,
      windows: quota.state(),
      waiting: quota.waiting,
      lastSuccess: this.#lastSuccess,
      lastFailure: this.#lastFailure,
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
    this.#options.quota.close()
    return this.#transport.close()
  }

  async #read<Value>(command: Command<Value>): Promise<Value> {
    const { name, domain } = command
    if (this.#unknown.has(name, domain)) throw domainNotFound(domain)
    try {
      return await this.#repeat(command)
    } catch (error) {
      if (domain && isNotFound(error)) this.#unknown.add(name, domain)
      throw error
    }
  }

  async #repeat<Value>(command: Command<Value>): Promise<Value> {
    const { clock, timeoutMs, log } = this.#options
    const startedAt = clock.now()
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(command)
      } catch (error) {
        if (!(error instanceof CallFailed)) throw error
        const mayHelp = error.kind === 'unknown' || error.kind === 'busy'
        const isLate = clock.now() - startedAt >= 2 * timeoutMs
        if (!mayHelp || tries === maxTries || isLate) throw error.error
        log.warn({ command: command.name, code: error.error.code }, 'retrying read')
        await delay(clock, backoffMs(tries))
      }
    }
  }

  async #attempt<Value>(command: Command<Value>): Promise<Value> {
    const { breaker, quota, calls } = this.#options
    const { name, slot } = command
    breaker.admit()
    try {
      await (typeof slot === 'string' ? quota.take(slot) : slot.use())
    } catch (error) {
      breaker.skipped()
      throw error
    }
    const observe = calls?.startTimer({ command: name })
    try {
      const text = await this.#transport.post(name, command.params)
      const { response, result } = readEnvelope(text, { ...command, command: name })
      const value = command.read(response, result)
      breaker.succeeded()
      this.#lastSuccess = new Date()
      this.#lastFailure = undefined
      observe?.({ outcome: 'ok' })
      return value
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      observe?.({ outcome: error.error.code })
      this.#recordFailure(error, command)
      throw error
    }
  }

  #recordFailure(failure: CallFailed, { name, domain }: Command<unknown>) {
    const { breaker, quota, log } = this.#options
    const { kind, number } = failure
    if (kind === 'auth') log.error({ command: name, number }, this.#remedy())
    if (kind === 'busy') quota.pause(1_000)
    // What the registrar answers about one domain says nothing about the account.
    const isAboutAccount = !failure.isAnswer || domain === '' || kind === 'auth' || kind === 'busy'
    if (kind === 'unknown' && isAboutAccount) breaker.failed()
    else breaker.succeeded()
    if (kind !== 'refused' && isAboutAccount)
      this.#lastFailure = { at: new Date(), code: failure.error.code }
  }

  #remedy(): string {
    const { clientIp, apiUser } = this.#options.account
    return `registrar refused the credentials: whitelist the address ${clientIp} in its panel for ${apiUser}, enable API access, check REGISTRAR_API_USER and REGISTRAR_API_KEY`
  }
}

const isNotFound = (error: unknown) =>
  error instanceof HttpError && error.code === 'domain_not_found'

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

// Jitter avoids synchronized retries.
const backoffMs = (tries: number) => 50 * 2 ** tries * (0.5 + Math.random() / 2)
