import { render } from './html.js'
import { currentRoute, navigate, routeChanges } from './router.js'

const typingMs = 150

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
 * A view whose state is in the address: `reload()` is called on entry, whenever the address changed, and when the window
 * has the focus again.
 */
export class RouteView extends View {
  #address = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing

  opened() {
    const { signal } = this
    // The shell renders first: a view that the address has left is out of the page by then.
    const follow = () => queueMicrotask(() => this.isConnected && this.#follow())
    routeChanges.addEventListener('change', follow, { signal })
    addEventListener('focus', () => this.reload(), { signal })
    this.#address = ''
    this.#follow()
  }

  #follow() {
    const { address } = this
    this.update()
    if (address === this.#address) return
    this.#address = address
    this.entered()
    this.reload()
  }

  /** As much of the address as says what is loaded. */
  get address() {
    const { path, query } = currentRoute()
    return `${path}?${query}`
  }

  /** Called before what another address wants is loaded. */
  entered() {}

  /** Loads what the address wants. @returns {unknown} */
  reload() {
    return undefined
  }

  get query() {
    return currentRoute().query
  }

  /** Those values of the address that are given. @param {string[]} names */
  values(...names) {
    return Object.fromEntries([...this.query].filter(([name]) => names.includes(name)))
  }

  /**
   * Opens the first page of this view with other values in its address; empty ones are left out.
   * @param {Record<string, string | undefined>} changes
   * @param {{ replace?: boolean }} [options]
   */
  open(changes, options) {
    const { path, query } = currentRoute()
    const next = Object.entries({ ...Object.fromEntries(query), page: undefined, ...changes })
    const search = new URLSearchParams(
      next.flatMap(([name, value]) => (value ? [[name, value]] : [])),
    )
    navigate(`#${path}${search.size > 0 ? `?${search}` : ''}`, options)
  }

  /** Puts what somebody types into the address, once they pause. */
  search = (/** @type {string} */ value) => {
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => {
      if (this.isConnected) this.open({ search: value.trim() }, { replace: true })
    }, typingMs)
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
