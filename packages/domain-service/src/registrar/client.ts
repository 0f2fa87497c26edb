import { type Histogram, HttpError, type Logger } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import type { Zone } from '../dns/record.ts'
import type { CallQuota, Priority, ReserveOptions } from '../ledger/call-quota.ts'
import type { Reservation } from '../ledger/reservation.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import {
  type DomainInfo,
  demandSuccess,
  type Nameservers,
  readDomainInfo,
  readDomainList,
  readNameserverList,
  readZone,
} from './responses.ts'
import { type Account, CallFailed, RegistrarTransport } from './transport.ts'
import type { Element } from './xml.ts'

export interface ListQuery {
  listType: string
  searchTerm: string | undefined
  page: number
  pageSize: number
  sortBy: string
}

interface Options {
  account: Account
  /** Milliseconds for one call; all tries of a read together may take twice that before the last one starts. */
  timeout: number
  quota: CallQuota
  breaker: CircuitBreaker
  log: Logger
  /** Told the seconds of each call. */
  calls?: Histogram<'command' | 'outcome'>
}

interface Call<Value> {
  command: string
  params: Record<string, string>
  expected: { result: string; domain: string }
  /** Turns the answer into our words; what it cannot is a bad answer, and counts as the registrar's failure. */
  read: (response: Element, result: Element) => Value
  slot?: CallSlot
}

/** Where a call gets its slot: a reservation of its round, or the queue of all calls. */
export type CallSlot = Priority | Reservation

const tries = 3

/** The registrar, one method a command. Reads are tried again where that may help; a write is sent once. */
export class RegistrarClient {
  readonly #options: Options
  readonly #wire: RegistrarTransport
  #lastSuccess: Date | undefined
  #lastFailure: { at: Date; code: string } | undefined

  constructor(options: Options) {
    this.#options = options
    this.#wire = new RegistrarTransport(options.account, options.timeout)
  }

  listDomains(query: ListQuery) {
    return this.#read({
      command: 'namecheap.domains.getList',
      params: {
        ListType: query.listType,
        ...(query.searchTerm === undefined ? {} : { SearchTerm: query.searchTerm }),
        Page: String(query.page),
        PageSize: String(query.pageSize),
        SortBy: query.sortBy,
      },
      expected: { result: 'DomainGetListResult', domain: '' },
      read: readDomainList,
    })
  }

  info(domain: Domain): Promise<DomainInfo> {
    return this.#read({
      command: 'namecheap.domains.getInfo',
      params: { DomainName: domain.name },
      expected: { result: 'DomainGetInfoResult', domain: domain.name },
      read: (_response, result) => readDomainInfo(result, domain.name),
    })
  }

  /** A domain on FreeDNS is unknown to the command that lists nameservers, but not to getInfo. */
  async nameservers(domain: Domain): Promise<Nameservers> {
    try {
      return await this.#read({
        command: 'namecheap.domains.dns.getList',
        params: { SLD: domain.sld, TLD: domain.tld },
        expected: { result: 'DomainDNSGetListResult', domain: domain.name },
        read: (_response, result) => readNameserverList(result, domain.name),
      })
    } catch (error) {
      if (!(error instanceof HttpError) || error.code !== 'domain_not_found') throw error
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
      command: 'namecheap.domains.dns.getHosts',
      params: { SLD: domain.sld, TLD: domain.tld },
      expected: { result: 'DomainDNSGetHostsResult', domain: domain.name },
      read: (_response, result) => readZone(result, domain.name),
      slot,
    })
  }

  /**
   * Replaces the whole zone, once.
   * @throws {CallFailed} whose kind says whether it may have been done all the same.
   */
  replaceZone(domain: Domain, zone: Zone, slot: CallSlot = 'write'): Promise<void> {
    return this.#attempt({
      command: 'namecheap.domains.dns.setHosts',
      params: { SLD: domain.sld, TLD: domain.tld, ...hostParams(zone) },
      expected: { result: 'DomainDNSSetHostsResult', domain: domain.name },
      read: (_response, result) => demandSuccess(result, domain.name),
      slot,
    })
  }

  /** What is known of the registrar's health without asking it. */
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

  close(): Promise<void> {
    return this.#wire.close()
  }

  async #read<Value>(call: Call<Value>): Promise<Value> {
    const started = performance.now()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call)
      } catch (error) {
        if (!(error instanceof CallFailed)) throw error
        const mayHelp = error.kind === 'unknown' || error.kind === 'busy'
        const isLate = performance.now() - started >= 2 * this.#options.timeout
        if (!mayHelp || attempt === tries || isLate) throw error.error
        this.#options.log.warn(
          { command: call.command, code: error.error.code },
          'read tried again',
        )
        await backOff(attempt)
      }
    }
  }

  async #attempt<Value>(call: Call<Value>): Promise<Value> {
    const { breaker, quota, calls } = this.#options
    const { slot = 'read' } = call
    breaker.admit()
    try {
      await (typeof slot === 'string' ? quota.take(slot) : slot.use())
    } catch (error) {
      breaker.skipped()
      throw error
    }
    const { command } = call
    const tell = calls?.startTimer({ command })
    try {
      const { response, result } = await this.#wire.call(command, call.params, call.expected)
      const value = call.read(response, result)
      breaker.succeeded()
      this.#lastSuccess = new Date()
      this.#lastFailure = undefined
      tell?.({ outcome: 'ok' })
      return value
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      tell?.({ outcome: error.error.code })
      this.#note(error, command)
      throw error
    }
  }

  #note(failure: CallFailed, command: string) {
    const { breaker, quota, log } = this.#options
    if (failure.kind === 'auth') log.error({ command, number: failure.number }, this.#remedy())
    if (failure.kind === 'unknown') breaker.failed()
    else breaker.succeeded() // It answered, if only to refuse.
    if (failure.kind === 'busy') quota.pause(1_000)
    if (failure.kind !== 'refused') this.#lastFailure = { at: new Date(), code: failure.error.code }
  }

  #remedy(): string {
    const { clientIp, apiUser } = this.#options.account
    return `the registrar refused our credentials: whitelist the address ${clientIp} in its panel for ${apiUser}, see that API access is on, and that REGISTRAR_API_USER and REGISTRAR_API_KEY are of this registrar`
  }
}

// Every row, and always the email type: what a write does not name, the registrar forgets.
function hostParams(zone: Zone): Record<string, string> {
  const params: Record<string, string> = { EmailType: zone.emailType ?? 'NONE' }
  for (const [at, row] of zone.rows.entries()) {
    const number = at + 1
    params[`HostName${number}`] = row.name
    params[`RecordType${number}`] = row.type
    params[`Address${number}`] = row.address
    if (row.mxPref !== '') params[`MXPref${number}`] = row.mxPref
    if (row.ttl !== '') params[`TTL${number}`] = row.ttl
  }
  return params
}

// Jittered, so that many who failed together do not come back together.
const backOff = (attempt: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, 50 * 2 ** attempt * (0.5 + Math.random() / 2)))
