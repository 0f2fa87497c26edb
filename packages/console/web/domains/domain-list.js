import { get, readRegistrar } from '../api/client.js'
import { call } from '../api/transport.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { links, searchBox } from '../ui/form.js'
import { daysUntil, formatCount, formatDate, formatNumber, toUnicode } from '../ui/format.js'
import { empty, icon, iconButton, page, show } from '../ui/states.js'
import { age, expiryBar, list, pager, readAge, sortButton, table } from '../ui/table.js'

const lists = { ALL: 'All', EXPIRING: 'Expiring', EXPIRED: 'Expired' }

/** The domains of the account: search, sort, expiry, lock, renewal, nameservers. Its state is in the address. */
class DomainListView extends RouteView {
  #list = new Resource(this, async (signal, fresh) => {
    const { sort, list, ...more } = this.values('search', 'sort', 'list', 'page')
    const query = { sort_by: sort, list_type: list, ...more, page_size: 50 }
    const { body, readAt } = await readRegistrar('/api/domains', { query, signal, fresh })
    return { .../** @type {Api.DomainList} */ (body), readAt }
  })
  #records = new Resource(this, async (signal) => {
    const { search } = this.values('search')
    const query = { search, page_size: 100 }
    return search ? get('domains', '/api/records', { query, signal }) : null
  })
  // Without the login: then the browser needs no preflight.
  #health = new Resource(this, async (signal) => {
    const { body } = await call('domains', '/health', { signal })
    return /** @type {Api.Health} */ (body)
  })

  template() {
    const { search = '', list = 'ALL' } = this.values('search', 'list')
    const isSandbox = this.#health.value?.checks.registrar?.registrar === 'sandbox'
    const chip = html`<span class="chip warn" title="No real registrar: nothing that is changed here has an effect">sandbox</span>`
    return page(
      html`Domains ${isSandbox ? chip : nothing}`,
      html`
        ${searchBox({ label: 'Search domains', value: search, onInput: this.search })}
        ${links('Which domains', lists, list, (value) => this.hrefWith({ list: value === 'ALL' ? undefined : value }))}
        ${iconButton('refresh', 'Reload', () => [this.#list.readNow(), this.#records.reload()])}`,
      [show(this.#list, (value) => this.#table(value), 10), search ? show(this.#records, foundRecords) : nothing],
    )
  }

  /** @param {Api.DomainList & { readAt: number }} list */
  #table({ domains, pagination, readAt }) {
    if (domains.length === 0) return this.#nothingFound()
    const { sort = 'NAME' } = this.values('sort')
    /** @param {string} label @param {string} key */
    const sorted = (label, key) => {
      const open = (/** @type {string} */ value) => this.open({ sort: value === 'NAME' ? undefined : value })
      const { state, button } = sortButton(label, [key, `${key}_DESC`], sort, open)
      return html`<th scope="col" aria-sort=${state}>${button}</th>`
    }
    const headers = [
      ...[sorted('Name', 'NAME'), sorted('Expires', 'EXPIREDATE'), 'Renewal', 'Transfer lock'],
      ...['DNS', sorted('Created', 'CREATEDATE')],
    ]
    return html`
      <p class="sr-only" role="status">${formatCount(pagination.total_items, 'domain')}</p>
      ${readAge(readAt)}
      ${table(headers, domains.map(domainRow), 'domains-table')}
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  #nothingFound() {
    const { search, list } = this.values('search', 'list')
    const clear = html`<button class="button" @click=${() => this.open({ search: undefined })}>Clear the search</button>`
    if (search) return empty('search', `No domain contains “${search}”`, '', clear)
    if (list) return empty('check', 'No domain here', 'Nothing expires soon.')
    const hint =
      'Domains that you register at the registrar appear here after a few minutes. If you expected some, ask an administrator whether your account may see them.'
    return empty('globe', 'No domains yet', hint)
  }
}

/** @param {Api.FoundRecords | null} found */
function foundRecords(found) {
  if (!found) return nothing
  const { records, pagination, zones_searched: zones } = found
  const more = pagination.total_items - records.length
  return html`
    <section class="panel" aria-labelledby="found-records">
      <h2 id="found-records">Records</h2>
      <p class="note" role="status">
        ${formatCount(pagination.total_items, 'record')} in ${formatCount(zones, 'zone')}, as they were last read from the registrar.
      </p>
      ${records.length > 0 ? list(records, recordColumns) : nothing}
      ${more > 0 ? html`<p class="note">And ${formatNumber(more)} more: search for more words.</p>` : nothing}
    </section>`
}

/** @type {Record<string, (record: Api.FoundRecords['records'][number]) => unknown>} */
const recordColumns = {
  Name: ({ domain, name }) => {
    const isApex = name === '@'
    const href = hrefTo(['domains', domain], { search: isApex ? '' : name })
    return html`<a data-row href=${href}>${toUnicode(isApex ? domain : `${name}.${domain}`)}</a>`
  },
  Type: ({ type }) => html`<span class="type-tag">${type}</span>`,
  Value: ({ address }) => (address.length > 160 ? `${address.slice(0, 160)}…` : address),
  Read: ({ read_at: readAt }) => age(readAt),
}

/** @param {Api.DomainEntry} domain */
const domainRow = (domain) => html`
  <tr>
    <th scope="row"><a data-row href=${hrefTo(['domains', domain.name])} title=${domain.name}>${toUnicode(domain.name)}</a></th>
    <td class="wide">${expiryBar(domain.expires_on, domain.is_expired)}</td>
    <td data-label="Renewal">${yesNo(domain.auto_renew, 'Automatic', 'Manual', isSoon(domain) ? 'warn' : '')}</td>
    <td data-label="Transfer">${yesNo(domain.is_locked, html`${icon('lock')} Locked`, 'Unlocked', '')}</td>
    <td data-label="DNS">${yesNo(domain.uses_registrar_dns, 'Registrar', 'Elsewhere', '')}</td>
    <td class="muted" data-label="Created">${formatDate(domain.created_on)}</td>
  </tr>`

/** @param {Api.DomainEntry} domain */
const isSoon = ({ expires_on: date }) => date !== null && daysUntil(date) <= 90

/** @param {boolean | null} value @param {unknown} yes @param {unknown} no @param {string} tone of `no` */
function yesNo(value, yes, no, tone) {
  if (value === null) return html`<span class="muted">unknown</span>`
  return value ? html`<span>${yes}</span>` : html`<span class="muted ${tone}">${no}</span>`
}

customElements.define('domain-list', DomainListView)
