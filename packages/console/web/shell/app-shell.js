import { html, nothing } from '../core/html.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../core/router.js'
import { config, offeredServices, titleOf } from '../core/services.js'
import { isAdmin, session } from '../core/session.js'
import { View } from '../core/view.js'
import { loginPage, loginPanel } from '../login/login-view.js'
import { openRenewal } from '../login/renewal-dialog.js'
import { icon } from '../ui/icons.js'
import { empty, failed, loading, notice } from '../ui/states.js'
import { toUnicode } from '../ui/unicode.js'
import { openAccount } from './account-dialog.js'
import { listenForKeys, openShortcuts } from './keyboard.js'
import { placeOf, places } from './routes.js'

/**
 * @import { Place } from './routes.js'
 */

/** The frame of the page: navigation, account, and the view that the address names. */
class AppShell extends View {
  /** @type {Map<string, HTMLElement | 'loading' | { error: unknown }>} */
  #views = new Map()
  #shownTitle = ''

  opened() {
    const { signal } = this
    const update = () => this.update()
    routeChanges.addEventListener('change', update, { signal })
    session.addEventListener('change', () => this.#afterLogin(), { signal })
    session.addEventListener('renew', () => void openRenewal(), { signal })
    addEventListener('online', update, { signal })
    addEventListener('offline', update, { signal })
    listenForKeys(signal)
  }

  #afterLogin() {
    if (session.isEmpty) this.#views.clear()
    this.update()
  }

  template() {
    if (session.isEmpty) {
      document.title = 'Log in · Domains and files'
      return loginPage()
    }
    const route = currentRoute()
    if (route.segments.length === 0) navigate(hrefTo([this.#home()]), { replace: true })
    const place = placeOf(currentRoute())
    this.#announce(place)
    return html`
      <button class="skip-link" @click=${this.#skip}>Skip to the content</button>
      <div class="frame">
        ${this.#navigation(place)}
        <main id="main" tabindex="-1">
          ${navigator.onLine ? nothing : notice('You are offline. What you see may be out of date; nothing can be saved.', 'warn')}
          ${this.#content(place)}
        </main>
      </div>`
  }

  /** @param {Place | undefined} current */
  #navigation(current) {
    const groups = [...offeredServices(), undefined]
    return html`
      <header class="sidebar">
        <a class="brand" href="#/"><img src=${new URL('../favicon.svg', import.meta.url).href} alt="" width="24" height="24" />
          <span>Domains and files</span></a>
        <nav aria-label="Main">
          ${groups.map((service) => {
            const shown = places.filter(
              (place) => place.service === service && (!place.isAdminOnly || isAdminOf(service)),
            )
            return html`<ul>${shown.map((place) => html`<li>${link(place, current)}</li>`)}</ul>`
          })}
        </nav>
        <div class="sidebar-foot">
          <button class="nav-link" @click=${openAccount}>${icon('person')}<span>${whoIsLoggedIn()}</span></button>
          <button class="nav-link" @click=${openShortcuts}>${icon('help')}<span>Keyboard</span></button>
        </div>
      </header>`
  }

  /** @param {Place | undefined} place */
  #content(place) {
    if (!place) {
      return html`<div class="view">${empty({ icon: 'search', title: 'There is no such page', action: html`<a class="button" href="#/">Start page</a>` })}</div>`
    }
    const { service } = place
    if (service && !offeredServices().includes(service)) {
      return html`<div class="view">${empty({ icon: 'warning', title: `The ${titleOf(service).toLowerCase()} service is not configured here` })}</div>`
    }
    if (service && !session.loginOf(service)) return loginPanel(service)
    const view = this.#views.get(place.module) ?? this.#load(place)
    if (view === 'loading') return html`<div class="view">${loading()}</div>`
    if (view instanceof HTMLElement) return view
    return html`<div class="view">${failed(view.error, () => this.#load(place))}</div>`
  }

  /** @param {Place} place @returns {'loading'} */
  #load({ module }) {
    this.#views.set(module, 'loading')
    preloadModules(module)
    void import(`../${module}.js`)
      .then(
        () => this.#views.set(module, document.createElement(module.replace(/^.*\//, ''))),
        () => {
          const error = new Error('This part of the page could not be loaded.')
          this.#views.set(module, { error })
        },
      )
      .then(() => this.update())
    return 'loading'
  }

  // A view whose service accepted the login comes first.
  #home() {
    return offeredServices().find((service) => session.loginOf(service)) ?? 'tokens'
  }

  /** @param {Place | undefined} place */
  #announce(place) {
    // A domain, a folder or a file by its name.
    const { segments, query } = currentRoute()
    const [first, ...names] = segments
    const name = ['domains', 'files'].includes(first ?? '') ? names.at(-1) : undefined
    const view = [toUnicode(name ?? place?.title ?? 'Not found'), query.get('tab')]
    document.title = `${view.filter(Boolean).join(', ')} · Domains and files`
    if (this.#shownTitle && this.#shownTitle !== document.title) {
      const main = this.querySelector('main')
      if (document.activeElement === document.body) main?.focus({ preventScroll: true })
    }
    this.#shownTitle = document.title
  }

  // On a phone the navigation is wider than the screen.
  rendered() {
    const current = this.querySelector('.sidebar [aria-current]')
    current?.scrollIntoView({ inline: 'nearest', block: 'nearest' })
  }

  #skip = () => this.querySelector('main')?.focus()
}

/** What a view imports loads at once, not one level after the other. @param {string} module */
function preloadModules(module) {
  for (const each of config.modules[module] ?? []) {
    const href = new URL(`../${each}`, import.meta.url).href
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'modulepreload', href }),
    )
  }
}

/** Of this service; of any, for places of both. @param {Place['service']} service */
const isAdminOf = (service) => (service ? [service] : offeredServices()).some(isAdmin)

/** @param {Place} place @param {Place | undefined} current */
const link = (place, current) => html`
  <a class="nav-link" href=${hrefTo([place.name])} aria-current=${place.name === current?.name ? 'page' : nothing}>
    ${icon(place.icon)}<span>${place.title}</span></a>`

function whoIsLoggedIn() {
  const names = offeredServices().flatMap((service) => session.loginOf(service)?.username ?? [])
  return [...new Set(names)].join(', ')
}

customElements.define('app-shell', AppShell)
