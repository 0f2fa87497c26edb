import { get } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { hrefTo } from '../core/router.js'
import { Resource, RouteView } from '../core/view.js'
import { searchBox } from '../ui/form.js'
import { daysUntil, formatCount } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { pager } from '../ui/pager.js'
import { empty, show } from '../ui/states.js'
import { sortHeader, table } from '../ui/table.js'
import { toUnicode } from '../ui/unicode.js'
import { expiryBar } from './expiry.js'
import '../ui/meter-bar.js'

/** @import { DomainEntry, DomainList } from '../api/schema.d.ts' */

const lists = { ALL: 'All', EXPIRING: 'Expiring', EXPIRED: 'Expired' }

/** The domains of the account: search, sort, expiry, lock, renewal, nameservers. Its state is in the address. */
class DomainListView extends RouteView {
  #list = new Resource(this, (signal) => {
    const {
      sort: sort_by,
      list: list_type,
      ...more
    } = this.values('search', 'sort', 'list', 'page')
    const query = { sort_by, list_type, ...more, page_size: 50 }
    return get('domains', '/api/domains', { query, signal })
  })
  #health = new Resource(this, (signal) => get('domains', '/health', { signal }))

  reload() {
    void this.#health.reload()
    return this.#list.reload()
  }

  template() {
    const { search = '', list = 'ALL' } = this.values('search', 'list')
    const isSandbox = this.#health.value?.checks.registrar?.registrar === 'sandbox'
    return html`
      <div class="view">
        <header class="view-header">
          <div class="toolbar">
            <h1>Domains</h1>
            ${isSandbox ? html`<span class="chip warn" title="No real registrar: nothing that is changed here has an effect">sandbox</span>` : nothing}
          </div>
          <div class="toolbar">
            ${searchBox({ label: 'Search domains', value: search, onInput: this.search })}
            <div class="segments" role="group" aria-label="Which domains">
              ${Object.entries(lists).map(
                ([value, label]) => html`
                  <button aria-pressed=${value === list} @click=${() => this.open({ list: value === 'ALL' ? undefined : value })}>${label}</button>`,
              )}
            </div>
            <button class="icon-button" aria-label="Reload" @click=${() => this.reload()}>${icon('refresh')}</button>
          </div>
        </header>
        ${show(this.#list, (value) => this.#table(value), 10)}
      </div>`
  }

  /** @param {DomainList} list */
  #table({ domains, pagination }) {
    if (domains.length === 0) return this.#nothingFound()
    const { sort = 'NAME' } = this.values('sort')
    /** @param {string} label @param {string} key */
    const sorted = (label, key) =>
      sortHeader(label, [key, `${key}_DESC`], sort, (value) =>
        this.open({ sort: value === 'NAME' ? undefined : value }),
      )
    const headers = [
      ...[sorted('Name', 'NAME'), sorted('Expires', 'EXPIREDATE'), 'Renewal', 'Transfer lock'],
      ...['DNS', sorted('Created', 'CREATEDATE')],
    ]
    return html`
      <p class="sr-only" role="status">${formatCount(pagination.total_items, 'domain')}</p>
      ${table(headers, domains.map(domainRow), 'domains-table')}
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  #nothingFound() {
    const { search, list } = this.values('search', 'list')
    if (search) {
      return empty({
        icon: 'search',
        title: `No domain contains “${search}”`,
        action: html`<button class="button" @click=${() => this.open({ search: undefined })}>Clear the search</button>`,
      })
    }
    if (list)
      return empty({ icon: 'check', title: 'No domain here', text: 'Nothing expires soon.' })
    return empty({
      icon: 'globe',
      title: 'No domains yet',
      text: 'Domains that you register at the registrar appear here after a few minutes. If you expected some, ask an administrator whether your account may see them.',
    })
  }
}

/** @param {DomainEntry} domain */
const domainRow = (domain) => html`
  <tr>
    <th scope="row"><a data-row href=${hrefTo(['domains', domain.name])} title=${domain.name}>${toUnicode(domain.name)}</a></th>
    <td>${expiryBar(domain.expires_on, domain.is_expired)}</td>
    <td data-label="Renewal">${yesNo(domain.auto_renew, 'Automatic', 'Manual', isSoon(domain) ? 'warn' : '')}</td>
    <td data-label="Transfer">${yesNo(domain.is_locked, html`${icon('lock')} Locked`, 'Unlocked', '')}</td>
    <td data-label="DNS">${yesNo(domain.uses_registrar_dns, 'Registrar', 'Elsewhere', '')}</td>
    <td class="muted" data-label="Created">${domain.created_on ?? nothing}</td>
  </tr>`

/** @param {DomainEntry} domain */
const isSoon = ({ expires_on: date }) => date !== null && daysUntil(date) <= 90

/** @param {boolean | null} value @param {unknown} yes @param {unknown} no @param {string} tone of `no` */
function yesNo(value, yes, no, tone) {
  if (value === null) return html`<span class="muted">unknown</span>`
  return value ? html`<span>${yes}</span>` : html`<span class="muted ${tone}">${no}</span>`
}

customElements.define('domain-list', DomainListView)
