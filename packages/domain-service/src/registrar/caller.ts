import { type Histogram, HttpError, type Logger } from '@domains-and-files/http'
import type { CallQuota, Priority, Reservation } from '../budget/call-quota.ts'
import { type Clock, delay } from '../clock.ts'
import { domainNotFound } from '../errors.ts'
import { CallFailed } from './call-failed.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import type { Element } from './element.ts'
import type { Account, RegistrarTransport } from './transport.ts'
import { UnknownDomains } from './unknown-domains.ts'

/** Where a call gets its slot: the reservation of its round, or the queue of all calls. */
export type CallSlot = Priority | Pick<Reservation, 'use'>

export interface CallerOptions {
  account: Account
  /** Per call. A read is repeated only while less than twice this has passed since its first try. */
  timeoutMs: number
  quota: CallQuota
  breaker: CircuitBreaker
  clock: Clock
  log: Logger
  /** Observes the seconds of each call. */
  calls?: Histogram<'command' | 'outcome'> | undefined
}

export interface Command<Value> {
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

/** Makes calls: within the quota, past the circuit breaker, measured, and repeated where that is harmless. */
export class RegistrarCaller {
  readonly #options: CallerOptions
  #transport: Promise<RegistrarTransport> | undefined
  readonly #unknown: UnknownDomains
  #lastSuccess: Date | undefined
  #lastFailure: { at: Date; code: string } | undefined

  constructor(options: CallerOptions) {
    this.#options = options
    this.#unknown = new UnknownDomains(options.clock)
  }

  /**
   * Makes a call that changes nothing, up to three times with backoff.
   * @throws {HttpError}; a domain that the registrar does not know is remembered for 60 s.
   */
  async read<Value>(command: Command<Value>): Promise<Value> {
    const { name, domain } = command
    if (this.#unknown.has(name, domain)) throw domainNotFound(domain)
    try {
      return await this.#repeat(command)
    } catch (error) {
      if (domain && isNotFound(error)) this.#unknown.add(name, domain)
      throw error
    }
  }

  /** Makes a call once. @throws {CallFailed}, or the HttpError of quota and breaker, which sent nothing. */
  async send<Value>(command: Command<Value>): Promise<Value> {
    const { breaker, quota, calls } = this.#options
    const { name, slot } = command
    const transport = await this.#openTransport()
    breaker.admit()
    try {
      await (typeof slot === 'string' ? quota.take(slot) : slot.use())
    } catch (error) {
      breaker.skipped()
      throw error
    }
    const observe = calls?.startTimer({ command: name })
    try {
      const { response, result } = await transport.call(command.params, {
        ...command,
        command: name,
      })
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

  /** The last outcomes of calls about the account. */
  get outcomes() {
    return { lastSuccess: this.#lastSuccess, lastFailure: this.#lastFailure }
  }

  /** Refuses calls that wait for a slot; resolves when calls under way are answered. */
  async close(): Promise<void> {
    this.#options.quota.close()
    await (await this.#transport)?.close()
  }

  // Loaded with the first call: the HTTP client and the XML parser take a fifth of the start.
  #openTransport(): Promise<RegistrarTransport> {
    const { account, timeoutMs } = this.#options
    this.#transport ??= import('./transport.ts').then(
      ({ RegistrarTransport }) => new RegistrarTransport(account, timeoutMs),
      (error) => {
        // Out of file descriptors, perhaps: the next call tries again.
        this.#transport = undefined
        throw error
      },
    )
    return this.#transport
  }

  async #repeat<Value>(command: Command<Value>): Promise<Value> {
    const { clock, timeoutMs, log } = this.#options
    const startedAt = clock.now()
    for (let tries = 1; ; tries++) {
      try {
        return await this.send(command)
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

export const isNotFound = (error: unknown) =>
  error instanceof HttpError && error.code === 'domain_not_found'

// Jitter avoids synchronized retries.
const backoffMs = (tries: number) => 50 * 2 ** tries * (0.5 + Math.random() / 2)
