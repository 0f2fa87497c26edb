import { steadyNow } from '../clock.ts'
import { registrarUnavailable } from '../errors.ts'

/**
 * A circuit breaker: after `threshold` failures in a row calls fail at once with 503 `registrar_unavailable` for
 * `pause` milliseconds; then one call probes, and the others wait for what it finds by failing too.
 */
export class CircuitBreaker {
  readonly #threshold: number
  readonly #pause: number
  readonly #now: () => number
  #failures = 0
  #openUntil = 0
  #probing = false

  constructor(options: { threshold?: number; pause?: number; now?: () => number } = {}) {
    this.#threshold = options.threshold ?? 5
    this.#pause = options.pause ?? 5_000
    this.#now = options.now ?? steadyNow
  }

  get state(): 'closed' | 'open' | 'half_open' {
    if (this.#failures < this.#threshold) return 'closed'
    return this.#now() < this.#openUntil ? 'open' : 'half_open'
  }

  /** @throws 503 `registrar_unavailable` while calls are to fail at once. */
  admit() {
    if (this.state === 'closed') return
    const left = this.#openUntil - this.#now()
    if (left > 0 || this.#probing) throw registrarUnavailable(Math.max(1, Math.ceil(left / 1000)))
    this.#probing = true
  }

  succeeded() {
    this.#failures = 0
    this.#probing = false
  }

  failed() {
    this.#failures++
    this.#probing = false
    if (this.#failures >= this.#threshold) this.#openUntil = this.#now() + this.#pause
  }

  /** The admitted call was never made. */
  skipped() {
    this.#probing = false
  }
}
