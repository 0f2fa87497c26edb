import { getDomain, listDomains } from '../api/domain-service.js'
import { html, nothing } from '../core/html.js'
import { currentRoute, hrefTo, routeChanges } from '../core/router.js'
import { Resource, View } from '../core/view.js'
import { expiryBar } from '../domains/expiry.js'
import { daysUntil, formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { show } from '../ui/states.js'
import '../ui/meter-bar.js'
import './history/zone-history.js'
import './records/zone-records.js'

/** @import { DomainEntry, DomainInfo } from '../api/schema.d.ts' */

const tabs = { records: 'Records', history: 'History', details: 'Registration' }

/** One domain: its records, its history, its registration. */
class ZoneView extends View {
  #domain = ''
  // The registration is a call of the registrar; the entry of the list is not.
  #info = new Resource(this, (signal) => getDomain(this.#domain, signal))
  #entry = new Resource(this, async (signal) => {
    const { domains } = await listDomains({ search: this.#domain }, signal)
    return domains.find(({ name }) => name === this.#domain)
  })

  opened() {
    routeChanges.addEventListener('change', () => this.#follow(), { signal: this.signal })
    this.#domain = ''
    this.#follow()
  }

  #follow() {
    const { segments } = currentRoute()
    const [place, domain = ''] = segments
    if (place !== 'domains' || !domain) return
    if (domain !== this.#domain) {
      this.#domain = domain
      this.#info.value = undefined
      this.#entry.value = undefined
      void this.#entry.reload()
    }
    const wantsInfo = currentRoute().query.get('tab') === 'details' && !this.#info.value
    if (wantsInfo && !this.#info.isLoading) void this.#info.reload()
    this.update()
  }

  template() {
    const tab = currentRoute().query.get('tab') ?? 'records'
    return html`
      <div class="view">
        <nav class="breadcrumb" aria-label="Breadcrumb"><a href="#/domains">Domains</a> ${icon('chevron')} <span>${this.#domain}</span></nav>
        <header class="view-header">
          <h1>${this.#domain}</h1>
          <div class="chips">${this.#entry.value ? chips(this.#entry.value) : nothing}</div>
        </header>
        <nav class="tabs" aria-label="Parts of this domain">
          ${Object.entries(tabs).map(
            ([name, title]) => html`
              <a
                href=${hrefTo(['domains', this.#domain], { tab: name === 'records' ? undefined : name })}
                aria-current=${name === tab ? 'page' : nothing}
                >${title}</a
              >`,
          )}
        </nav>
        ${this.#tab(tab)}
      </div>`
  }

  /** @param {string} tab */
  #tab(tab) {
    if (tab === 'history') return html`<zone-history .domain=${this.#domain}></zone-history>`
    if (tab === 'details') return show(this.#info, details)
    return html`<zone-records .domain=${this.#domain}></zone-records>`
  }
}

/** @param {DomainEntry} entry */
function chips({ uses_registrar_dns: usesRegistrarDns, expires_on }) {
  const days = expires_on ? daysUntil(expires_on) : Infinity
  return html`
    ${days <= 90 ? html`<span class="chip ${days <= 30 ? 'bad' : 'warn'}">${days <= 0 ? 'Expired' : `Expires in ${days} days`}</span>` : nothing}
    ${usesRegistrarDns === false ? html`<span class="chip warn">DNS elsewhere</span>` : nothing}`
}

/** @param {DomainInfo} info */
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
