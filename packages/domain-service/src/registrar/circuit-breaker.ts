import type { Clock } from '@domains-and-files/http'
import { registrarUnavailable } from '../errors.ts'

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
