import { explain } from '../api/problem.js'
import { html } from '../core/html.js'
import { View } from '../core/view.js'
import { formatDuration } from './format.js'

/** Tries again by itself when the service said to, or after a few seconds where it did not answer. */
class RetryCountdown extends View {
  retry = () => {}
  /** @type {unknown} */
  #error
  #left = 0
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer

  /** A further failure counts again. @param {unknown} error */
  set error(error) {
    if (error === this.#error) return
    this.#error = error
    this.#left = Math.ceil(explain(error).retryAfter ?? 5)
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.#tick(), 1000)
    this.update()
  }

  #tick() {
    this.#left -= 1
    this.update()
    if (this.#left > 0 && this.isConnected) return
    clearInterval(this.#timer)
    if (this.isConnected) this.retry()
  }

  template() {
    return html`<span class="muted">Trying again in ${formatDuration(Math.max(0, this.#left))}</span>`
  }
}

customElements.define('retry-countdown', RetryCountdown)
