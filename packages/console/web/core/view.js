import { explain } from '../api/transport.js'
import { render } from '../vendor/lit-html.js'
import { currentRoute, hrefTo, navigate, routeChanges } from './router.js'

export { html, nothing, render, svg } from '../vendor/lit-html.js'

const typingMs = 150

/** @param {HTMLElement} parent @param {string} selector @returns {boolean} whether there is one to have the focus */
export function focusOn(parent, selector) {
  /** @type {HTMLElement | null} */
  const element = parent.querySelector(selector)
  element?.focus()
  return element !== null
}

/** Where what had the focus is gone, keys go on at the start of the view or of the dialog above it. */
export function refocus() {
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll('main, dialog[open]')
  if (document.activeElement === document.body) [...places].at(-1)?.focus({ preventScroll: true })
}

/**
 * Base of all custom elements. `template()` returns what the element shows; `update()` renders it again, once per
 * microtask however often it is called. `signal` aborts when the element leaves the page.
 */
export class View extends HTMLElement {
  /** @type {Resource<any>[]} */
  resources = []
  /** After so many milliseconds it is loaded again; 0: never. */
  pollMs = 0
  #isPending = false
  #leaving = new AbortController()

  get signal() {
    return this.#leaving.signal
  }

  connectedCallback() {
    this.#leaving = new AbortController()
    this.opened()
    if (this.pollMs) this.#poll()
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

  /** Loads everything again and again while the page is visible. */
  #poll() {
    const { signal } = this
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer
    const run = async () => {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') await this.reload()
      if (!signal.aborted) timer = setTimeout(() => void run(), this.pollMs)
    }
    document.addEventListener('visibilitychange', () => void run(), { signal })
    signal.addEventListener('abort', () => clearTimeout(timer))
    void run()
  }

  /** Loads what it shows. @returns {unknown} */
  reload() {
    return Promise.all(this.resources.map((each) => each.reload()))
  }

  /** Loads again what it shows, where something was done. @param {Promise<unknown> | undefined} done */
  async reloadAfter(done) {
    if (await done) await this.reload()
  }

  update() {
    if (this.#isPending) return
    this.#isPending = true
    queueMicrotask(() => {
      this.#isPending = false
      if (!this.isConnected) return
      keepFocus(this, () => {
        render(this.template(), this)
        this.rendered()
      })
    })
  }
}

/**
 * Renders a view. What had the focus in it may be gone then: the nearest element around it that is left takes the focus,
 * so that keys and screen readers go on there.
 * @param {View} view
 * @param {() => void} draw
 */
function keepFocus(view, draw) {
  /** @type {HTMLElement[]} */
  const around = []
  for (let each = document.activeElement; each && each !== view && view.contains(each); each = each.parentElement)
    around.push(/** @type {HTMLElement} */ (each))
  draw()
  if (around.length === 0 || document.activeElement !== document.body) return
  const left = around.find((each) => each.isConnected) ?? view.closest('main')
  if (!left) return
  if (left.tabIndex < 0) left.tabIndex = -1
  left.focus({ preventScroll: true })
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
    void this.reload()
  }

  /** As much of the address as says what is loaded. */
  get address() {
    const { path, query } = currentRoute()
    return `${path}?${query}`
  }

  /** Called before what another address wants is loaded. */
  entered() {}

  get query() {
    return currentRoute().query
  }

  /** Those values of the address that are given. @param {string[]} names */
  values(...names) {
    return Object.fromEntries([...this.query].filter(([name]) => names.includes(name)))
  }

  /** The first page of this view with other values in its address; empty ones are left out. @param {Record<string, string | undefined>} changes */
  hrefWith(changes) {
    const { segments, query } = currentRoute()
    return hrefTo(segments, { ...Object.fromEntries(query), page: undefined, ...changes })
  }

  /** @param {Record<string, string | undefined>} changes @param {{ replace?: boolean }} [options] */
  open(changes, options) {
    navigate(this.hrefWith(changes), options)
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
  #isFresh = false
  /** @type {AbortController | undefined} */
  #running

  /**
   * @param {View} view re-rendered at each change
   * @param {(signal: AbortSignal, fresh: boolean) => Promise<Value>} load `fresh`: not from a cache
   */
  constructor(view, load) {
    this.#view = view
    this.#load = load
    view.resources.push(this)
  }

  /** Loads the value where it comes from, not from a cache. */
  readNow = () => {
    this.#isFresh = true
    return this.reload()
  }

  /** Loads the value; an earlier load that is still running is aborted and its outcome ignored. */
  reload = async () => {
    this.#running?.abort()
    const running = new AbortController()
    this.#running = running
    this.isLoading = true
    this.#view.update()
    const fresh = this.#isFresh
    this.#isFresh = false
    try {
      const value = await this.#load(AbortSignal.any([running.signal, this.#view.signal]), fresh)
      if (running !== this.#running) return
      // The list ends before the page of the address.
      const { page, total_pages: last } = /** @type {any} */ (value)?.pagination ?? {}
      if (last && page > last && this.#view instanceof RouteView)
        return this.#view.open({ page: String(last) }, { replace: true })
      this.value = value
      this.error = undefined
    } catch (error) {
      if (running !== this.#running || this.#view.signal.aborted) return
      this.error = error
      const { status, code } = explain(error)
      // The value is gone, or it is that of the address before.
      if (status === 404 || (status === 400 && code)) this.value = undefined
    }
    this.isLoading = false
    this.#view.update()
  }
}

/** Something that is done: whether it is under way, and why it failed. */
export class Attempt {
  isBusy = false
  /** @type {unknown} */
  error
  #onChange

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange
  }

  /** @param {() => Promise<unknown>} task @returns {Promise<boolean>} whether it succeeded */
  async run(task) {
    this.isBusy = true
    this.error = undefined
    this.#onChange()
    try {
      await task()
    } catch (error) {
      this.error = error
    }
    this.isBusy = false
    this.#onChange()
    return this.error === undefined
  }
}
