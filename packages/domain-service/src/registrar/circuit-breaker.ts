import { steadyNow } from '../clock.ts'
import { registrarUnavailable } from '../errors.ts'

/**
 * Circuit breaker: after `threshold` failures in a row, calls fail with 503 `registrar_unavailable` for `pauseMs`. Then
 * one call probes; others fail fast until it completes.
 */
export class CircuitBreaker {
  readonly #threshold: number
  readonly #pauseMs: number
  readonly #now: () => number
  #failures = 0
  #openUntil = 0
  #isProbing = false

  constructor(options: { threshold?: number; pauseMs?: number; now?: () => number } = {}) {
    this.#threshold = options.threshold ?? 5
    this.#pauseMs = options.pauseMs ?? 5_000
    this.#now = options.now ?? steadyNow
  }

  get state(): 'closed' | 'open' | 'half_open' {
    if (this.#failures < this.#threshold) return 'closed'
    return this.#now() < this.#openUntil ? 'open' : 'half_open'
  }

  /** @throws 503 `registrar_unavailable` while open, or while another call probes. */
  admit() {
    if (this.state === 'closed') return
    const leftMs = this.#openUntil - this.#now()
    if (leftMs > 0 || this.#isProbing)
      throw registrarUnavailable(Math.max(1, Math.ceil(leftMs / 1000)))
    this.#isProbing = true
  }

  succeeded() {
    this.#failures = 0
    this.#isProbing = false
  }

  failed() {
    this.#failures++
    this.#isProbing = false
    if (this.#failures >= this.#threshold) this.#openUntil = this.#now() + this.#pauseMs
  }

  /** The admitted call was not made. */
  skipped() {
    this.#isProbing = false
  }
}
