import { get, readRegistrar } from '../api/client.js'
import { currentRoute, hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView, View } from '../core/view.js'
import { links } from '../ui/form.js'
import { daysUntil, formatCount, formatDate, toUnicode } from '../ui/format.js'
import { icon, show } from '../ui/states.js'
import { expiryBar, readAge } from '../ui/table.js'
import { ZoneStore } from './zone-store.js'
import './zone-history.js'
import './records/zone-records.js'

const tabs = { records: 'Records', history: 'History', registration: 'Registration' }

/** One domain: its records, its history, its registration. */
class ZoneView extends RouteView {
  #store = new ZoneStore(this)
  // The registration is a call of the registrar; the entry of the list is not.
  #info = new Resource(this, async (signal, fresh) => {
    const path = `/api/domains/${encodeURIComponent(this.#store.domain)}/info`
    const { body, readAt } = await readRegistrar(path, { signal, fresh })
    return { info: /** @type {Api.DomainInfo} */ (body), readAt }
  })
  #entry = new Resource(this, async (signal) => {
    const { domain } = this.#store
    const query = { search: domain, page_size: 100 }
    const { domains } = await get('domains', '/api/domains', { query, signal })
    return domains.find(({ name }) => name === domain)
  })

  entered() {
    if (!Object.hasOwn(tabs, this.#tab)) this.open({ tab: undefined }, { replace: true })
  }

  reload() {
    const [, domain = ''] = currentRoute().segments
    if (domain !== this.#store.domain) {
      this.#store.open(domain)
      this.#info.value = undefined
      this.#entry.value = undefined
      void this.#entry.reload()
    }
    // Also where that of the domain before is still on its way.
    if (this.#tab === 'registration' || this.#info.isLoading) void this.#info.reload()
  }

  get #tab() {
    return this.query.get('tab') ?? 'records'
  }

  // These show what the store has.
  rendered() {
    const part = this.querySelector('zone-records, zone-history')
    if (part instanceof View) part.update()
  }

  template() {
    const { domain } = this.#store
    const name = toUnicode(domain)
    const hrefOf = (/** @type {string} */ tab) => hrefTo(['domains', domain], { tab: tab === 'records' ? '' : tab })
    return html`
      <div class="view">
        <nav class="breadcrumb" aria-label="Breadcrumb"><a href="#/domains">Domains</a> ${icon('chevron')} <span>${name}</span></nav>
        <header class="view-header">
          <h1>${name}</h1>
          <div class="chips">
            ${name === domain ? nothing : html`<code class="muted">${domain}</code>`} ${this.#entry.value ? chips(this.#entry.value) : nothing}
          </div>
        </header>
        ${links('Parts of this domain', tabs, this.#tab, hrefOf, 'tabs')}
        ${this.#part()}
      </div>`
  }

  #part() {
    if (this.#tab === 'history') return html`<zone-history .store=${this.#store}></zone-history>`
    if (this.#tab === 'registration')
      return show(this.#info, ({ info, readAt }) => [readAge(readAt, this.#info), details(info)])
    return html`<zone-records .store=${this.#store}></zone-records>`
  }
}

/** @param {Api.DomainEntry} entry */
function chips({ uses_registrar_dns: usesRegistrarDns, expires_on }) {
  const days = expires_on ? daysUntil(expires_on) : Infinity
  return html`
    ${days <= 90 ? html`<span class="chip ${days <= 30 ? 'bad' : 'warn'}">${days < 0 ? 'Expired' : days === 0 ? 'Expires today' : `Expires in ${formatCount(days, 'day')}`}</span>` : nothing}
    ${usesRegistrarDns === false ? html`<span class="chip warn">DNS elsewhere</span>` : nothing}`
}

/** @param {Api.DomainInfo} info */
const details = (info) => html`
  <dl class="panel facts">
    <div><dt>Status</dt><dd>${info.status ?? 'unknown'}</dd></div>
    <div><dt>Expires</dt><dd>${expiryBar(info.expires_on)} <span class="muted">${formatDate(info.expires_on)}</span></dd></div>
    <div><dt>Registered</dt><dd>${formatDate(info.created_on)}</dd></div>
    <div><dt>Owner</dt><dd>${info.owner ?? 'unknown'}</dd></div>
    <div><dt>WHOIS privacy</dt><dd>${info.whois_guard.status ?? 'unknown'}</dd></div>
    <div><dt>DNS provider</dt><dd>${info.dns.provider ?? 'unknown'}</dd></div>
    <div><dt>Nameservers</dt><dd>${info.dns.nameservers.length > 0 ? info.dns.nameservers.map((name) => html`<code>${name}</code><br />`) : '—'}</dd></div>
    <div><dt>Rights</dt><dd>${info.rights.join(', ') || '—'}</dd></div>
  </dl>`

customElements.define('zone-view', ZoneView)
