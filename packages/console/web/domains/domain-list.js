import { listDomains } from '../api/domain-service.js'
import { html, nothing } from '../core/html.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../core/router.js'
import { Resource, View } from '../core/view.js'
import { searchBox } from '../ui/form.js'
import { daysUntil, formatCount } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { pager } from '../ui/pager.js'
import { empty, show } from '../ui/states.js'
import { moveBetweenRows, sortHeader } from '../ui/table.js'
import { expiryBar } from './expiry.js'
import '../ui/meter-bar.js'

/** @import { DomainEntry, DomainList } from '../api/schema.d.ts' */

const lists = { ALL: 'All', EXPIRING: 'Expiring', EXPIRED: 'Expired' }

/** The domains of the account: search, sort, expiry, lock, renewal, nameservers. Its state is in the address. */
class DomainListView extends View {
  #list = new Resource(this, (signal) => listDomains(this.#query(), signal))
  #address = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing

  opened() {
    routeChanges.addEventListener('change', () => this.#follow(), { signal: this.signal })
    this.#address = ''
    this.#follow()
  }

  // Reloads when the address of this view changed.
  #follow() {
    const { segments, query } = currentRoute()
    if (segments[0] !== 'domains' || segments.length > 1 || this.#address === `?${query}`) return
    this.#address = `?${query}`
    void this.#list.reload()
  }

  #query() {
    const { query } = currentRoute()
    return {
      search_term: query.get('search') ?? undefined,
      sort_by: query.get('sort') ?? 'NAME',
      list_type: query.get('list') ?? 'ALL',
      page: query.get('page') ?? '1',
      page_size: 50,
    }
  }

  /** @param {Record<string, string | undefined>} changes */
  #open(changes, replace = false) {
    const { query } = currentRoute()
    const next = { ...Object.fromEntries(query), page: undefined, ...changes }
    navigate(hrefTo(['domains'], next), { replace })
  }

  template() {
    const { search_term: search = '', list_type: list } = this.#query()
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Domains</h1>
          <div class="toolbar">
            ${searchBox({ label: 'Search domains', value: search, onInput: this.#search })}
            <div class="segments" role="group" aria-label="Which domains">
              ${Object.entries(lists).map(
                ([value, label]) => html`
                  <button
                    aria-pressed=${value === list}
                    @click=${() => this.#open({ list: value === 'ALL' ? undefined : value })}
                  >
                    ${label}
                  </button>`,
              )}
            </div>
            <button class="icon-button" aria-label="Reload" @click=${() => void this.#list.reload()}>
              ${icon('refresh')}
            </button>
          </div>
        </header>
        ${show(this.#list, (value) => this.#table(value), 10)}
      </div>`
  }

  /** @param {DomainList} list */
  #table({ domains, pagination }) {
    if (domains.length === 0) return this.#nothingFound()
    const sort = this.#query().sort_by
    const onSort = (/** @type {string} */ value) =>
      this.#open({ sort: value === 'NAME' ? undefined : value })
    return html`
      <p class="sr-only" role="status">${formatCount(pagination.total_items, 'domain')}</p>
      <div class="table-frame ${this.#list.isLoading ? 'is-loading' : ''}" @keydown=${moveBetweenRows}>
        <table class="rows domains-table">
          <thead>
            <tr>
              ${sortHeader('Name', ['NAME', 'NAME_DESC'], sort, onSort)}
              ${sortHeader('Expires', ['EXPIREDATE', 'EXPIREDATE_DESC'], sort, onSort)}
              <th scope="col">Renewal</th>
              <th scope="col">Transfer lock</th>
              <th scope="col">DNS</th>
              ${sortHeader('Created', ['CREATEDATE', 'CREATEDATE_DESC'], sort, onSort)}
            </tr>
          </thead>
          <tbody>${domains.map(domainRow)}</tbody>
        </table>
      </div>
      ${pager(pagination, (page) => this.#open({ page: String(page) }))}`
  }

  #nothingFound() {
    const { search_term: search, list_type: list } = this.#query()
    if (search) {
      return empty({
        icon: 'search',
        title: `No domain contains “${search}”`,
        action: html`<button class="button" @click=${() => this.#open({ search: undefined })}>Clear the search</button>`,
      })
    }
    if (list !== 'ALL')
      return empty({ icon: 'check', title: 'No domain here', text: 'Nothing expires soon.' })
    return empty({
      icon: 'globe',
      title: 'No domains yet',
      text: 'Domains that you register at the registrar appear here after a few minutes. If you expected some, ask an administrator whether your account may see them.',
    })
  }

  #search = (/** @type {string} */ value) => {
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => this.#open({ search: value.trim() || undefined }, true), 200)
  }
}

/** @param {DomainEntry} domain */
const domainRow = (domain) => html`
  <tr>
    <th scope="row"><a data-row href=${hrefTo(['domains', domain.name])}>${domain.name}</a></th>
    <td>${expiryBar(domain.expires_on, domain.is_expired)}</td>
    <td>${yesNo(domain.auto_renew, 'Automatic', 'Manual', isSoon(domain) ? 'warn' : '')}</td>
    <td>${yesNo(domain.is_locked, html`${icon('lock')} Locked`, 'Unlocked', '')}</td>
    <td>${yesNo(domain.uses_registrar_dns, 'Registrar', 'Elsewhere', '')}</td>
    <td class="muted">${domain.created_on ?? nothing}</td>
  </tr>`

const soonDays = 90

/** @param {DomainEntry} domain */
const isSoon = ({ expires_on: date }) => date !== null && daysUntil(date) <= soonDays

/** @param {boolean | null} value @param {unknown} yes @param {unknown} no @param {string} tone of `no` */
function yesNo(value, yes, no, tone) {
  if (value === null) return html`<span class="muted">unknown</span>`
  return value ? html`<span>${yes}</span>` : html`<span class="muted ${tone}">${no}</span>`
}

customElements.define('domain-list', DomainListView)
