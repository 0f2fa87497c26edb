import { isAdmin, managesUsers, session } from '../api/client.js'
import { config, offeredServices, titleOf } from '../api/transport.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../core/router.js'
import { html, nothing, Resource, refocus, View } from '../core/view.js'
import { loginPage, loginPanel } from '../login/login-form.js'
import { toUnicode } from '../ui/format.js'
import { attempt, empty, icon, notice, show } from '../ui/states.js'

/**
 * Which element shows which address. `module`: without its ending, and the element has its name. Modules are loaded when they
 * are first needed; the server finds their names in this file, to tell what they import.
 * @import { IconName } from '../ui/states.js'
 * @typedef {[name: string, title: string, icon: IconName, service: Api.ServiceName | undefined, module: string,
 *   isFor?: (service: Api.ServiceName) => boolean]} Place
 */

/** @type {Place[]} */
const places = [
  ['domains', 'Domains', 'globe', 'domains', 'domains/domain-list'],
  ['changes', 'Changes', 'queue', 'domains', 'changes/change-queue'],
  ['registrar', 'Registrar', 'gauge', 'domains', 'registrar/registrar-view', isAdmin],
  ['files', 'Files', 'folder', 'files', 'files/file-browser'],
  ['file-changes', 'File changes', 'clock', 'files', 'files/file-change-list'],
  ['versions', 'Versions', 'tag', 'files', 'versions/version-list'],
  ['statistics', 'Statistics', 'chart', 'files', 'statistics/file-statistics'],
  ['events', 'Events', 'bell', undefined, 'events/event-list'],
  ['webhooks', 'Webhooks', 'link', undefined, 'webhooks/webhook-list', isAdmin],
  ['tokens', 'API tokens', 'key', undefined, 'tokens/token-list'],
  ['users', 'Users', 'person', undefined, 'users/user-list', managesUsers],
  ['trusts', 'Trusts', 'lock', undefined, 'trusts/trust-list', managesUsers],
]

/** @type {Place} */
const zonePlace = ['domains', 'Domain', 'globe', 'domains', 'zone/zone-view']

/** The place of the address; undefined where there is none. */
function currentPlace() {
  const [first, second] = currentRoute().segments
  return first === 'domains' && second ? zonePlace : places.find(([name]) => name === first)
}

/** The frame of the page: navigation, account, and the view that the address names. */
class AppShell extends View {
  /** By their modules. @type {Map<string, Resource<HTMLElement>>} */
  #views = new Map()
  #shownTitle = ''

  opened() {
    const { signal } = this
    const update = () => this.update()
    routeChanges.addEventListener('change', update, { signal })
    session.addEventListener('change', update, { signal })
    session.addEventListener('renew', () => void renew(), { signal })
    addEventListener('online', update, { signal })
    addEventListener('offline', update, { signal })
    addEventListener('keydown', pressKey, { signal })
  }

  template() {
    if (session.isEmpty) {
      this.#views.clear()
      document.title = 'Log in · Domains and files'
      return loginPage()
    }
    const [first, domain = '', tab, ...more] = currentRoute().segments
    if (!first) navigate(hrefTo([home()]), { replace: true })
    // Typed, or from elsewhere: the address of a tab has it in the query.
    if (first === 'domains' && tab && more.length === 0) navigate(hrefTo([first, domain], { tab }), { replace: true })
    const place = currentPlace()
    this.#announce(place)
    return html`
      <button class="skip-link" @click=${() => this.querySelector('main')?.focus()}>Skip to the content</button>
      <div class="frame">
        ${navigation(place)}
        <main id="main" tabindex="-1">
          ${navigator.onLine ? nothing : notice('You are offline. What you see may be out of date; nothing can be saved.', 'warn')}
          ${this.#content(place)}
        </main>
      </div>`
  }

  /** @param {Place | undefined} place */
  #content(place) {
    const [, , , service, module = ''] = place ?? []
    if (!place)
      return html`<div class="view">${empty('search', 'There is no such page', '', html`<a class="button" href="#/">Start page</a>`)}</div>`
    if (service && !offeredServices().includes(service))
      return html`<div class="view">${empty('warning', `The ${titleOf(service).toLowerCase()} service is not configured here`)}</div>`
    if (service && !session.loginOf(service)) return loginPanel(service)
    if (!isShown(place))
      return html`<div class="view">${empty('lock', 'This page is for admins', 'Ask an admin for the right to see it.')}</div>`
    const view = this.#views.get(module) ?? this.#load(module)
    return view.value ?? html`<div class="view">${show(view, (element) => element)}</div>`
  }

  /** @param {string} module */
  #load(module) {
    const view = new Resource(this, async () => {
      await importModule(module)
      return document.createElement(module.replace(/^.*\//, ''))
    })
    this.#views.set(module, view)
    void view.reload()
    return view
  }

  /** @param {Place | undefined} place */
  #announce(place) {
    // A domain, a folder or a file by its name.
    const { segments, query } = currentRoute()
    const [first, ...names] = segments
    const name = ['domains', 'files'].includes(first ?? '') ? names.at(-1) : undefined
    const view = [toUnicode(name ?? place?.[1] ?? 'Not found'), query.get('tab') ?? query.get('since')]
    document.title = `${view.filter(Boolean).join(', ')} · Domains and files`
    if (this.#shownTitle && this.#shownTitle !== document.title) refocus()
    this.#shownTitle = document.title
  }

  // On a phone the navigation is wider than the screen.
  rendered() {
    const current = this.querySelector('.sidebar [aria-current]')
    current?.scrollIntoView({ inline: 'nearest', block: 'nearest' })
  }
}

// A view whose service accepted the login comes first.
const home = () => offeredServices().find((service) => session.loginOf(service)) ?? 'tokens'

/** What a module imports loads at once, not one level after the other. @param {string} module */
async function importModule(module) {
  for (const each of config.modules[module] ?? []) {
    const href = new URL(`../${each}`, import.meta.url).href
    const link = Object.assign(document.createElement('link'), { rel: 'modulepreload', href })
    document.head.append(link)
  }
  return import(`../${module}.js`).catch(() => {
    throw new Error('This part of the page could not be loaded.')
  })
}

const dialogs = () => importModule('login/account-dialogs')
const openAccount = () => attempt(async () => void (await dialogs()).openAccount())
const openShortcuts = () => attempt(async () => void (await dialogs()).openShortcuts())

// Without the dialog the requests fail that wait for a login.
const renew = () =>
  dialogs().then(
    ({ openRenewal }) => openRenewal(),
    () => {
      for (const service of session.renewing) session.settle(service)
    },
  )

/** @param {Place | undefined} current */
const navigation = (current) => html`
  <header class="sidebar">
    <a class="brand" href="#/"><img src=${new URL('../favicon.svg', import.meta.url).href} alt="" width="24" height="24" />
      <span>Domains and files</span></a>
    <nav aria-label="Main">
      ${[...offeredServices(), undefined].map(
        (group) =>
          html`<ul>${places.map((place) => (place[3] === group && isShown(place) ? html`<li>${link(place, current)}</li>` : nothing))}</ul>`,
      )}
    </nav>
    <div class="sidebar-foot">
      <button class="nav-link" @click=${openAccount}>${icon('person')}<span>${whoIsLoggedIn()}</span></button>
      <button class="nav-link" @click=${openShortcuts}>${icon('help')}<span>Keyboard</span></button>
    </div>
  </header>`

/** Who may use it at its service; at any, where the place is of both. @param {Place} place */
const isShown = ([, , , service, , isFor = () => true]) => (service ? [service] : offeredServices()).some(isFor)

/** @param {Place} place @param {Place | undefined} current */
const link = ([name, title, iconName], current) => html`
  <a class="nav-link" href=${hrefTo([name])} aria-current=${name === current?.[0] ? 'page' : nothing}>
    ${icon(iconName)}<span>${title}</span></a>`

function whoIsLoggedIn() {
  const names = offeredServices().flatMap((service) => session.loginOf(service)?.username ?? [])
  return [...new Set(names)].join(', ')
}

/** Keys that work everywhere, but not while somebody types or a dialog is open. @param {KeyboardEvent} event */
function pressKey(event) {
  const target = /** @type {HTMLElement} */ (event.target)
  if (event.key === 'Escape') leaveSearch(target)
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  const isDown = event.key === 'ArrowDown' && target.matches?.('[type=search]')
  if (!isDown && target.matches?.('input:not([type=checkbox]), select, textarea')) return
  if (document.querySelector('dialog[open]')) return
  if (event.key.length === 1 && localStorage.characterKeys === 'off') return
  if (act(event.key)) event.preventDefault()
}

/** @type {Record<string, string>} what each key goes to, or presses */
const targets = {
  '/': '[data-search]',
  n: '[data-key=n]',
  r: '[data-key=r]',
  ArrowDown: '[data-row]',
}

/** @param {string} key */
function act(key) {
  if (key === '?') void openShortcuts()
  if (!targets[key] || (key === 'ArrowDown' && document.activeElement?.matches('main :not([type=search])')))
    return key === '?'
  /** @type {HTMLElement | null} */
  const target = document.querySelector(`main ${targets[key]}`)
  if (target?.matches('[data-key]')) target.click()
  else target?.focus()
  return target !== null
}

/** @param {HTMLElement} target */
function leaveSearch(target) {
  if (!(target instanceof HTMLInputElement) || target.type !== 'search') return
  if (target.value === '') target.blur()
  target.value = ''
  target.dispatchEvent(new Event('input'))
}

customElements.define('app-shell', AppShell)
