import { type Clock, delay, type Histogram, HttpError, type Logger } from '@domains-and-files/http'
import type { ListQuery } from '@domains-and-files/registrar-sandbox/protocol'
import { LRUCache } from 'lru-cache'
import type { CallQuota, CallSlot } from '../budget/call-quota.ts'
import type { Domain } from '../dns/domain-name.ts'
import { emailTypes, type Zone } from '../dns/zone.ts'
import { domainNotFound, registrarUnavailable } from '../errors.ts'
import { CallFailed } from './call-failed.ts'
import type { CacheOptions } from './response-cache.ts'
import type { DomainInfo, Element, Nameservers } from './responses.ts'
import * as responses from './responses.ts'
import type { Account, Call, RegistrarTransport } from './transport.ts'

export interface RegistrarOptions {
  account: Account
  /** Per call. A read is repeated only while less than twice this has passed since its first try. */
  timeoutMs: number
  quota: CallQuota
  clock: Clock
  log: Logger
  /** Observes the seconds of each call. */
  calls?: Histogram<'command' | 'outcome'> | undefined
  /** Called when the circuit breaker opens, and when it closes. */
  onFailing?: ((isFailing: boolean) => void) | undefined
}

interface Command<Value> extends Call {
  /** Converts the answer; throws {CallFailed} where it cannot. */
  read: (result: Element, domain: string, response: Element) => Value
  slot: CallSlot
  /** Called right before the first byte is sent. Where it throws, nothing is sent. */
  onSend?: (() => void) | undefined
}

const maxTries = 3

/**
 * The registrar, one method per command. Each call waits for its slot of the quota, is refused while the circuit breaker
 * is open, and is measured. Reads are repeated where that may help; a write is sent once.
 */
export class RegistrarClient {
  readonly #options: RegistrarOptions
  readonly quota: CallQuota
  readonly #breaker: CircuitBreaker
  /** Names that the registrar does not know, per command: it is not asked again for 60 s. */
  readonly #unknown: LRUCache<string, true>
  #transport: RegistrarTransport | undefined
  /** The last outcomes of calls about the account, as the API has them. */
  #outcomes: { last_success_at: string | null; last_failure: { at: string; code: string } | null } = {
    last_success_at: null,
    last_failure: null,
  }

  constructor(options: RegistrarOptions) {
    this.#options = options
    this.quota = options.quota
    this.#breaker = new CircuitBreaker(options.clock, options.onFailing)
    this.#unknown = new LRUCache({ max: 1_000, ttl: 60_000, ttlResolution: 0, perf: options.clock })
  }

  /** One page of the account's domains, and the number of all that match. */
  listDomains(query: ListQuery, slot: CallSlot = 'read') {
    return this.#read({
      ...command('domains.getList', 'DomainGetListResult'),
      params: {
        ListType: query.listType,
        ...(query.searchTerm !== undefined && { SearchTerm: query.searchTerm }),
        Page: String(query.page),
        PageSize: String(query.pageSize),
        SortBy: query.sortBy,
      },
      read: responses.readDomainList,
      slot,
    })
  }

  /** The suffixes that the registrar sells, as it describes them. */
  tlds(): Promise<Element> {
    return this.#read({ ...command('domains.getTldList', 'Tlds'), read: (tlds) => tlds })
  }

  info(domain: Domain, slot: CallSlot): Promise<DomainInfo> {
    return this.#read({
      ...command('domains.getInfo', 'DomainGetInfoResult', domain),
      params: { DomainName: domain.name },
      read: responses.readDomainInfo,
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
      return await this.#read({
        ...command('domains.dns.getList', 'DomainDNSGetListResult', domain),
        read: responses.readNameserverList,
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
    const zone = await this.#read({
      ...command('domains.dns.getHosts', 'DomainDNSGetHostsResult', domain),
      read: responses.readZone,
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
    const params = { ...setHosts.params, ...responses.hostParams(zone) }
    return this.#send({ ...setHosts, params, read: responses.requireSuccess, slot, onSend })
  }

  /** The state of the registrar, as the API has it; makes no call. */
  state() {
    return {
      client_ip: this.#options.account.clientIp,
      breaker: this.#breaker.state,
      calls_waiting: this.quota.waiting,
      ...this.#outcomes,
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
  async close(): Promise<void> {
    this.quota.close()
    await this.#transport?.close()
  }

  /**
   * Makes a call that changes nothing, up to three times with backoff.
   * @throws {HttpError}; a domain that the registrar does not know is remembered for 60 s.
   */
  async #read<Value>(command: Command<Value>): Promise<Value> {
    const { clock, timeoutMs, log } = this.#options
    const { command: name, domain } = command
    const key = `${name} ${domain}`
    const startedAt = clock.now()
    if (this.#unknown.has(key)) throw domainNotFound(domain)
    for (let tries = 1; ; tries++) {
      try {
        return await this.#send(command)
      } catch (error) {
        if (domain && isNotFound(error)) this.#unknown.set(key, true)
        if (!(error instanceof CallFailed)) throw error
        const mayHelp = error.kind === 'unknown' || error.kind === 'busy'
        if (!mayHelp || tries === maxTries || clock.now() - startedAt >= 2 * timeoutMs) throw error
        log.warn({ command: name, code: error.code }, 'retrying read')
        // Jitter avoids synchronized retries.
        await delay(clock, 50 * 2 ** tries * (0.5 + Math.random() / 2))
      }
    }
  }

  /** Makes a call once. @throws {CallFailed}, or the HttpError of quota, breaker and `onSend`, which sent nothing. */
  async #send<Value>(command: Command<Value>): Promise<Value> {
    const { account, timeoutMs, calls } = this.#options
    const { slot, onSend = () => undefined } = command
    this.#breaker.admit(false)
    // Loaded with the first call: the HTTP client and the XML parser take a fifth of the start.
    const { RegistrarTransport: Transport } = await import('./transport.ts')
    this.#transport ??= new Transport(account, timeoutMs)
    await this.quota.take(slot)
    // Only now: some calls wait for their slot for hours.
    this.#breaker.admit()
    const observe = calls?.startTimer({ command: command.command })
    try {
      const { response, result } = await this.#transport.call(command, onSend)
      const value = command.read(result, command.domain, response)
      this.#breaker.succeeded()
      this.#outcomes = { last_success_at: new Date().toISOString(), last_failure: null }
      observe?.({ outcome: 'ok' })
      return value
    } catch (error) {
      if (error instanceof CallFailed) {
        observe?.({ outcome: error.code })
        this.#recordFailure(error, command)
      } else this.#breaker.skipped()
      throw error
    }
  }

  #recordFailure(failure: CallFailed, { command: name, domain }: Command<unknown>) {
    const { log, account } = this.#options
    const { kind, number } = failure
    if (kind === 'auth') log.error({ command: name, number }, remedyOf(account))
    if (kind === 'busy') this.quota.pause(1_000)
    // What the registrar answers about one domain says nothing about the account.
    const isAboutAccount = !failure.isAnswer || domain === '' || kind === 'auth' || kind === 'busy'
    if (kind === 'unknown' && isAboutAccount) this.#breaker.failed()
    else this.#breaker.succeeded()
    if (kind !== 'refused' && isAboutAccount)
      this.#outcomes.last_failure = { at: new Date().toISOString(), code: failure.code }
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

const remedyOf = ({ clientIp, apiUser }: Account) =>
  `registrar refused the credentials: whitelist the address ${clientIp} in its panel for ${apiUser}, enable API access, check REGISTRAR_API_USER and REGISTRAR_API_KEY`

const isNotFound = (error: unknown) => error instanceof HttpError && error.code === 'domain_not_found'

const maxFailures = 5
const pauseMs = 5_000

/**
 * Circuit breaker: after 5 failures in a row, calls fail with 503 `registrar_unavailable` for 5 s. Then one call probes;
 * others fail fast until it completes.
 */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, 'now'>
  readonly #onFailing: (isFailing: boolean) => void
  #failures = 0
  #openUntil = 0
  #isProbing = false

  constructor(clock: Pick<Clock, 'now'>, onFailing: (isFailing: boolean) => void = () => undefined) {
    this.#clock = clock
    this.#onFailing = onFailing
  }

  get state(): 'closed' | 'open' | 'half_open' {
    if (this.#failures < maxFailures) return 'closed'
    return this.#clock.now() < this.#openUntil ? 'open' : 'half_open'
  }

  /** `isMade`: now, perhaps as the probe. @throws 503 `registrar_unavailable` while open, or another call probes. */
  admit(isMade = true) {
    if (this.#failures < maxFailures) return
    const leftMs = this.#openUntil - this.#clock.now()
    if (leftMs > 0 || this.#isProbing) throw registrarUnavailable(Math.max(1, Math.ceil(leftMs / 1000)))
    this.#isProbing = isMade
  }

  succeeded() {
    if (this.#failures >= maxFailures) this.#onFailing(false)
    this.#failures = 0
    this.#isProbing = false
  }

  failed() {
    this.#failures++
    if (this.#failures === maxFailures) this.#onFailing(true)
    this.#isProbing = false
    if (this.#failures >= maxFailures) this.#openUntil = this.#clock.now() + pauseMs
  }

  /** The admitted call was not made. */
  skipped() {
    this.#isProbing = false
  }
}
