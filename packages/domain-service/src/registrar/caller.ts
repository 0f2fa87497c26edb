import { type Clock, delay, type Histogram, HttpError, type Logger } from '@domains-and-files/http'
import { LRUCache } from 'lru-cache'
import type { CallQuota, CallSlot } from '../budget/call-quota.ts'
import { domainNotFound, registrarUnavailable } from '../errors.ts'
import { CallFailed } from './call-failed.ts'
import type { Element } from './responses.ts'
import type { Account, Call, RegistrarTransport } from './transport.ts'

export interface CallerOptions {
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

export interface Command<Value> extends Call {
  /** Converts the answer; throws {CallFailed} where it cannot. */
  read: (result: Element, domain: string, response: Element) => Value
  slot: CallSlot
  /** Called right before the first byte is sent. Where it throws, nothing is sent. */
  onSend?: (() => void) | undefined
}

const maxTries = 3

/** Makes calls: within the quota, past the circuit breaker, measured, and repeated where that is harmless. */
export class RegistrarCaller {
  readonly #options: CallerOptions
  /** Names that the registrar does not know, per command: it is not asked again for 60 s. */
  readonly #unknown: LRUCache<string, true>
  readonly breaker: CircuitBreaker
  #transport: RegistrarTransport | undefined
  /** The last outcomes of calls about the account, as the API has them. */
  outcomes: { last_success_at: string | null; last_failure: { at: string; code: string } | null } = {
    last_success_at: null,
    last_failure: null,
  }

  constructor(options: CallerOptions) {
    this.#options = options
    this.#unknown = new LRUCache({ max: 1_000, ttl: 60_000, ttlResolution: 0, perf: options.clock })
    this.breaker = new CircuitBreaker(options.clock, options.onFailing)
  }

  /**
   * Makes a call that changes nothing, up to three times with backoff.
   * @throws {HttpError}; a domain that the registrar does not know is remembered for 60 s.
   */
  async read<Value>(command: Command<Value>): Promise<Value> {
    const { clock, timeoutMs, log } = this.#options
    const { command: name, domain } = command
    const key = `${name} ${domain}`
    const startedAt = clock.now()
    if (this.#unknown.has(key)) throw domainNotFound(domain)
    for (let tries = 1; ; tries++) {
      try {
        return await this.send(command)
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
  async send<Value>(command: Command<Value>): Promise<Value> {
    const { account, timeoutMs, quota, calls } = this.#options
    const { slot, onSend = ignore } = command
    this.breaker.admit(false)
    // Loaded with the first call: the HTTP client and the XML parser take a fifth of the start.
    const { RegistrarTransport: Transport } = await import('./transport.ts')
    this.#transport ??= new Transport(account, timeoutMs)
    await quota.take(slot)
    // Only now: some calls wait for their slot for hours.
    this.breaker.admit()
    const observe = calls?.startTimer({ command: command.command })
    try {
      const { response, result } = await this.#transport.call(command, onSend)
      const value = command.read(result, command.domain, response)
      this.breaker.succeeded()
      this.outcomes = { last_success_at: new Date().toISOString(), last_failure: null }
      observe?.({ outcome: 'ok' })
      return value
    } catch (error) {
      if (error instanceof CallFailed) {
        observe?.({ outcome: error.code })
        this.#recordFailure(error, command)
      } else this.breaker.skipped()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#options.quota.close()
    await this.#transport?.close()
  }

  #recordFailure(failure: CallFailed, { command: name, domain }: Command<unknown>) {
    const { quota, log, account } = this.#options
    const { kind, number } = failure
    if (kind === 'auth') log.error({ command: name, number }, remedyOf(account))
    if (kind === 'busy') quota.pause(1_000)
    // What the registrar answers about one domain says nothing about the account.
    const isAboutAccount = !failure.isAnswer || domain === '' || kind === 'auth' || kind === 'busy'
    if (kind === 'unknown' && isAboutAccount) this.breaker.failed()
    else this.breaker.succeeded()
    if (kind !== 'refused' && isAboutAccount)
      this.outcomes.last_failure = { at: new Date().toISOString(), code: failure.code }
  }
}

const ignore = () => undefined

const remedyOf = ({ clientIp, apiUser }: Account) =>
  `registrar refused the credentials: whitelist the address ${clientIp} in its panel for ${apiUser}, enable API access, check REGISTRAR_API_USER and REGISTRAR_API_KEY`

export const isNotFound = (error: unknown) => error instanceof HttpError && error.code === 'domain_not_found'

const breakerThreshold = 5
const breakerPauseMs = 5_000

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

  constructor(clock: Pick<Clock, 'now'>, onFailing: (isFailing: boolean) => void = ignore) {
    this.#clock = clock
    this.#onFailing = onFailing
  }

  get state(): 'closed' | 'open' | 'half_open' {
    if (this.#failures < breakerThreshold) return 'closed'
    return this.#clock.now() < this.#openUntil ? 'open' : 'half_open'
  }

  /** `isMade`: now, perhaps as the probe. @throws 503 `registrar_unavailable` while open, or another call probes. */
  admit(isMade = true) {
    if (this.#failures < breakerThreshold) return
    const leftMs = this.#openUntil - this.#clock.now()
    if (leftMs > 0 || this.#isProbing) throw registrarUnavailable(Math.max(1, Math.ceil(leftMs / 1000)))
    this.#isProbing = isMade
  }

  succeeded() {
    if (this.#failures >= breakerThreshold) this.#onFailing(false)
    this.#failures = 0
    this.#isProbing = false
  }

  failed() {
    this.#failures++
    if (this.#failures === breakerThreshold) this.#onFailing(true)
    this.#isProbing = false
    if (this.#failures >= breakerThreshold) this.#openUntil = this.#clock.now() + breakerPauseMs
  }

  /** The admitted call was not made. */
  skipped() {
    this.#isProbing = false
  }
}
