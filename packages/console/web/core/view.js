import { render } from './html.js'

/**
 * Base of all custom elements. `template()` returns what the element shows; `update()` renders it again, once per
 * microtask however often it is called. `signal` aborts when the element leaves the page.
 */
export class View extends HTMLElement {
  #isPending = false
  #leaving = new AbortController()

  get signal() {
    return this.#leaving.signal
  }

  connectedCallback() {
    this.#leaving = new AbortController()
    this.opened()
    this.update()
  }

  disconnectedCallback() {
    this.#leaving.abort()
  }

  /** Called each time the element enters the page, before it renders. */
  opened() {}

  /** Called after each rendering. */
  rendered() {}

  /** @returns {unknown} */
  template() {
    return undefined
  }

  update() {
    if (this.#isPending) return
    this.#isPending = true
    queueMicrotask(() => {
      this.#isPending = false
      if (!this.isConnected) return
      render(this.template(), this)
      this.rendered()
    })
  }
}

/**
 * A value that is loaded: `loading`, `ready` or `failed`. A value loaded earlier stays while a newer one is on its way.
 * @template Value
 */
export class Resource {
  /** @type {Value | undefined} */
  value
  /** @type {unknown} */
  error
  isLoading = false
  #view
  #load
  /** @type {AbortController | undefined} */
  #running

  /**
   * @param {View} view re-rendered at each change
   * @param {(signal: AbortSignal) => Promise<Value>} load
   */
  constructor(view, load) {
    this.#view = view
    this.#load = load
  }

  /** Loads the value; an earlier load that is still running is aborted and its outcome ignored. */
  async reload() {
    this.#running?.abort()
    const running = new AbortController()
    this.#running = running
    this.isLoading = true
    this.#view.update()
    try {
      const value = await this.#load(AbortSignal.any([running.signal, this.#view.signal]))
      if (running !== this.#running) return
      this.value = value
      this.error = undefined
    } catch (error) {
      if (running !== this.#running || this.#view.signal.aborted) return
      this.error = error
    }
    this.isLoading = false
    this.#view.update()
  }
}
